"""How many slots an objective needs, by bisection. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from jobs.forecast.replay.load import Load
from jobs.forecast.replay.results import Outcome
from jobs.forecast.replay.simulation import Replay

MOST_SLOTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Aim:
    """An owner's objective: this part of its calls starts within so many seconds."""

    seconds: float
    part: float = 0.95


@dataclass(frozen=True, slots=True)
class Needed:
    """The smallest number of slots with which all aims are met; None: no number is enough.

    `unmet` are the owners that no number of slots helps: a cap, a rate or a window keeps them.
    """

    slots: int | None
    unmet: tuple[str, ...] = ()


def slots_needed(load: Load, aims: dict[str, Aim], *, deadline: float | None = None) -> Needed:
    """Return how many slots the aims need. More slots are taken to be no worse for any owner.

    Raises OutOfTime after the deadline.
    """

    def unmet(slots: int) -> tuple[str, ...]:
        return unmet_aims(Replay(replace(load, slots=slots), deadline=deadline).run(), aims)

    most = min(MOST_SLOTS, max(1, len(load.calls)))
    return _smallest(unmet, first=min(max(1, load.slots), most), most=most)


def unmet_aims(outcome: Outcome, aims: dict[str, Aim]) -> tuple[str, ...]:
    """Return the owners whose aims a replay did not meet. One without a start meets its aim."""
    found = []
    for name, aim in sorted(aims.items()):
        waits = outcome.waits.get(name, ())
        late = sum(wait > aim.seconds for wait in waits)
        if late > (1 - aim.part) * len(waits) + 1e-9:
            found.append(name)
    return tuple(found)


def _smallest(unmet: Callable[[int], tuple[str, ...]], *, first: int, most: int) -> Needed:
    low, high = 0, first
    while left := unmet(high):
        if high == most:
            return Needed(None, left)
        low, high = high, min(most, 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        if unmet(middle):
            low = middle
        else:
            high = middle
    return Needed(high)
