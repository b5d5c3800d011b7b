"""When runs start, told by going through every second: slow, plain, and nothing of the project.

All times are whole seconds from the moment of asking.
"""

from dataclasses import dataclass

AGEING = 60
"""A step of priority counts as much as so many seconds in the queue."""


@dataclass
class Some:
    """Runs alike: how many, how long each takes, and its openings as (from, last start)."""

    count: int
    seconds: int
    openings: list[tuple[int, int]]
    priority: int = 5


@dataclass
class Other:
    """Another owner's work, in worker seconds."""

    weight: float
    seconds: float


def starts_of(
    some: list[Some],
    *,
    slots: int,
    until: int,
    weight: float = 1,
    cap: int | None = None,
    others: list[Other] | None = None,
) -> list[tuple[int, int]]:
    """Return (second, index of its kind) of every start, in order."""
    others = others or []
    left = [kind.count for kind in some]
    found: list[tuple[int, int]] = []
    ends: list[int] = []
    owed = 0.0
    for second in range(until + 1):
        ends = [end for end in ends if end > second]
        order = sorted(
            (opened - AGEING * some[index].priority, index)
            for index in range(len(some))
            if left[index] and (opened := _opened(some[index], second)) is not None
        )
        wanted = min(slots, len(ends) + sum(left[index] for _, index in order))
        if cap is not None:
            wanted = min(wanted, cap)
        beside = sum(other.weight for other in others if other.seconds > 0)
        mine = min(float(wanted), slots * weight / (weight + beside))
        for other in others:
            if other.seconds > 0:
                other.seconds -= (slots - mine) * other.weight / beside
        # Of a part of a slot, one start each time that the parts have paid for the one before.
        whole = int(mine + 1e-9)
        for _, index in order:
            while left[index] and len(ends) < whole + (mine > whole):
                if len(ends) >= whole:
                    if owed > 1e-9:
                        break
                    owed = some[index].seconds
                left[index] -= 1
                ends.append(second + some[index].seconds)
                found.append((second, index))
        owed = max(0.0, owed - (mine - whole))
    return found


def _opened(kind: Some, second: int) -> int | None:
    return next((start for start, last in kind.openings if start <= second <= last), None)
