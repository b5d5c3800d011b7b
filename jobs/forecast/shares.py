"""How many slots an owner's runs have over time, beside the work of others. Pure.

The work of others is not simulated run by run: it uses its part of the slots, which may be less
than one slot, until its worker seconds are used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

NEARLY: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The waiting work of a submission: worker seconds, and how many slots it can use at once.

    It needs slots from `since` on, in seconds from now.
    """

    seconds: float
    most: float = inf
    since: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    works: Sequence[Work]
    weight: float = 1
    most: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The slots, and what decides about an owner's part of them.

    `rate` is in starts per second. `own` is the work of the owner's other submissions.
    """

    slots: int
    weight: float = 1
    max_running: int | None = None
    rate: float | None = None
    rivals: Sequence[Rival] = ()
    own: Sequence[Work] = ()


class _Remaining:
    __slots__ = ("rate", "seconds", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.seconds = work.seconds
        self.rate = 0.0


class Share:
    """The slots of some runs of an owner over time; `amount` is what they may use now."""

    def __init__(self, capacity: Capacity) -> None:
        self._slots = capacity.slots
        cap = inf if capacity.max_running is None else float(capacity.max_running)
        # Weight, limit and work of each owner; ours is the last.
        self._owners = [
            (rival.weight, rival.most, [*map(_Remaining, rival.works)]) for rival in capacity.rivals
        ]
        self._owners.append((capacity.weight, cap, [*map(_Remaining, capacity.own)]))
        self._at = 0.0
        self._wanted = 0.0
        self.amount = 0.0
        self.next_change = inf
        self._drain(0.0)
        self._divide()

    @property
    def fair(self) -> float:
        """The slots that the runs would have now if they could use all."""
        return self._divided(self._slots)[1]

    def want(self, slots: float) -> None:
        """Use up to this many slots from now on; others take the rest."""
        wanted = min(slots, float(self._slots))
        if wanted != self._wanted:
            self._wanted = wanted
            self._divide()

    def advance(self, to: float) -> None:
        while self.next_change <= to:
            self._drain(self.next_change)
            self._divide()
        self._drain(to)

    def _drain(self, to: float) -> None:
        span, self._at = to - self._at, to
        for _, _, lefts in self._owners:
            for left in lefts:
                left.seconds -= left.rate * span
            lefts[:] = [left for left in lefts if left.seconds > NEARLY]
        *rivals, ours = self._owners
        self._owners = [*(rival for rival in rivals if rival[2]), ours]

    def _divide(self) -> None:
        rates, self.amount = self._divided(self._wanted)
        self.next_change = inf
        for _, _, lefts in self._owners:
            for left in lefts:
                left.rate = rates.get(id(left), 0.0)
                if left.work.since > self._at:
                    self.next_change = min(self.next_change, left.work.since)
                elif left.rate > NEARLY:
                    done = self._at + max(left.seconds, NEARLY) / left.rate
                    self.next_change = min(self.next_change, done)

    def _divided(self, wanted: float) -> tuple[dict[int, float], float]:
        """Divide the slots among owners, and among their submissions; return the rates and ours."""
        asking = [
            [left for left in lefts if left.work.since <= self._at] for _, _, lefts in self._owners
        ]
        asked = [sum(left.work.most for left in lefts) for lefts in asking]
        asked[-1] += wanted
        claims = [
            (weight, min(most, ask))
            for (weight, most, _), ask in zip(self._owners, asked, strict=True)
        ]
        rates: dict[int, float] = {}
        *parts, ours = divided(self._slots, claims)
        for part, lefts in zip(parts, asking[:-1], strict=True):
            each = divided(part, [(1.0, left.work.most) for left in lefts])
            rates.update(zip(map(id, lefts), each, strict=True))
        *beside, amount = divided(
            ours, [*((1.0, one.work.most) for one in asking[-1]), (1, wanted)]
        )
        rates.update(zip(map(id, asking[-1]), beside, strict=True))
        return rates, amount


def divided(total: float, claims: Sequence[tuple[float, float]]) -> list[float]:
    """Divide a total among claims of (weight, most): by weight, and at most `most` for each.

    What a claim cannot use goes to the others, by their weights (max-min fairness).
    """
    got = [0.0] * len(claims)
    left, weights = total, sum(weight for weight, _ in claims)
    for index in sorted(range(len(claims)), key=lambda one: claims[one][1] / claims[one][0]):
        weight, most = claims[index]
        got[index] = min(most, left * weight / max(weight, weights))
        left -= got[index]
        weights -= weight
    return got
