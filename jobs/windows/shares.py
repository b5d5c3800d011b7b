"""How many slots an owner's runs have at a moment, while the work of others is done. Pure.

Work of others is a fluid: it takes its part of the slots, by weight, and is done when its worker
seconds are. What it holds at one moment is not known to the slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

NEARLY: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What waits of another owner, or of the same owner in another submission.

    `seconds` are worker seconds, `most` is how many of its slots it can use at once; it asks for
    them from `since` on, in seconds from now.
    """

    seconds: float
    weight: float = 1
    most: float = inf
    since: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What there is to run on: slots, and what an owner may have of them beside the others.

    `rate` is starts a second. `others` is work of other owners, `own` that of the owner's other
    submissions, which share its part alike.
    """

    slots: int
    weight: float = 1
    max_running: int | None = None
    rate: float | None = None
    others: Sequence[Work] = ()
    own: Sequence[Work] = ()


class Share:
    """The slots of some runs of an owner, as time goes on: `amount` is what they may use now."""

    def __init__(self, capacity: Capacity) -> None:
        """Begin at moment 0, with nothing of ours that asks for a slot."""
        self._capacity = capacity
        self._others = [_Left(work) for work in capacity.others if work.seconds > 0]
        self._own = [_Left(work) for work in capacity.own if work.seconds > 0]
        self._at = 0.0
        self._wanted = 0.0
        self.amount = 0.0
        self.next_change = inf
        self._divide()

    def want(self, slots: float) -> None:
        """Ask for so many slots from now on: what we leave, others take."""
        wanted = min(slots, float(self._capacity.slots))
        if wanted != self._wanted:
            self._wanted = wanted
            self._divide()

    def advance(self, to: float) -> None:
        """Let time go on: the others' work is done meanwhile."""
        while self.next_change <= to:
            self._drain(self.next_change)
            self._divide()
        self._drain(to)

    @property
    def fair(self) -> float:
        """The slots that they would have now if they could use them all."""
        others, own = self._asking()
        return self._divided(others, own, wanted=self._capacity.slots)[-1]

    def _drain(self, to: float) -> None:
        span = to - self._at
        for left in (*self._others, *self._own):
            left.seconds -= left.rate * span
        self._at = to
        self._others = [left for left in self._others if left.seconds > NEARLY]
        self._own = [left for left in self._own if left.seconds > NEARLY]

    def _divide(self) -> None:
        others, own = self._asking()
        *rates, self.amount = self._divided(others, own, wanted=self._wanted)
        for left, rate in zip([*others, *own], rates, strict=True):
            left.rate = rate
        self.next_change = min(
            (
                left.work.since
                if left.work.since > self._at
                else self._at + max(left.seconds, NEARLY) / left.rate
                for left in (*self._others, *self._own)
                if left.rate > NEARLY or left.work.since > self._at
            ),
            default=inf,
        )

    def _asking(self) -> tuple[list[_Left], list[_Left]]:
        """Return the work that asks for slots now: of other owners, and of this one."""
        others = [left for left in self._others if left.work.since <= self._at]
        return others, [left for left in self._own if left.work.since <= self._at]

    def _divided(
        self, others: Sequence[_Left], own: Sequence[_Left], *, wanted: float
    ) -> list[float]:
        """Divide the slots among owners, and this one's among its submissions; ours are last."""
        asked = wanted + sum(left.work.most for left in own)
        cap = self._capacity.max_running
        ours = (self._capacity.weight, min(asked, inf if cap is None else cap))
        *theirs, total = divided(self._capacity.slots, [*map(_claim, others), ours])
        return [*theirs, *divided(total, [*map(_claim, own), (1.0, wanted)])]


class _Left:
    """What is left of some work, and how many slots it has now."""

    __slots__ = ("rate", "seconds", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.seconds = work.seconds
        self.rate = 0.0


def _claim(left: _Left) -> tuple[float, float]:
    return left.work.weight, left.work.most


def divided(total: float, claims: Sequence[tuple[float, float]]) -> list[float]:
    """Return what each claim, of weight and most, gets: by weight, and none more than its most.

    What one cannot use goes to the others, by their weights (max-min fairness).
    """
    got = [0.0] * len(claims)
    left, weights = total, sum(weight for weight, _ in claims)
    for index in sorted(range(len(claims)), key=lambda one: claims[one][1] / claims[one][0]):
        weight, most = claims[index]
        got[index] = min(most, left * weight / max(weight, weights))
        left -= got[index]
        weights -= weight
    return got
