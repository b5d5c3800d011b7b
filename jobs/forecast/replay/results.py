"""How the calls of a replay went, by owner. Pure.

A wait is from the moment from which a call may start, in its hours, to its start, as in the
statistics.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.forecast.replay.load import SECOND, Call, Load

ROUNDING: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerOutcome:
    """How an owner's calls went. Waits are in seconds, None without starts."""

    owner: str
    started: int
    p50: float | None
    p95: float | None
    longest: float | None
    late_share: float | None = None
    """The part of the starts that waited longer than was asked for."""
    missed: int = 0
    """Calls whose window closed before they started; most started in a later one."""
    never: int = 0
    """Calls that no window within a year was long enough for."""
    expired: int = 0


def part_of(waits: Sequence[float], part: float) -> float:
    """Return the smallest of some sorted waits that at least this part of all does not exceed."""
    # Rounded: 0.95 * 100 is more than 95 in binary.
    return waits[max(0, math.ceil(round(part * len(waits), ROUNDING)) - 1)]


def jain(parts: Sequence[float]) -> float:
    """Return Jain's index of received by entitled share: 1 is fair."""
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else 1.0


class Outcome:
    """The waits of a replay, and the calls that did not start."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.waits: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.missed: Counter[str] = Counter()
        self.never: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()
        self.ended_at = 0
        self.jain: float | None = None
        self._missed: set[int] = set()

    def start(self, call: Call, wait: int, *, at: int) -> None:
        del at
        if call.is_counted:
            self.waits[call.owner].append(wait / SECOND)

    def end(self, now: int) -> None:
        self.ended_at = max(self.ended_at, now)

    def miss(self, call: Call, *, is_final: bool) -> None:
        """Note that a call missed its window, once for each call."""
        if is_final:
            self.never[call.owner] += 1
        elif id(call) not in self._missed:
            self._missed.add(id(call))
            self.missed[call.owner] += 1

    def expire(self, call: Call) -> None:
        self.expired[call.owner] += 1

    def close(self, shares: Shares, *, left: Mapping[str, int]) -> None:
        """Finish the outcome; calls that are left have never got a turn."""
        for owner, count in left.items():
            self.never[owner] += count
        self.jain = shares.jain()

    def owners(self, *, within: float | None = None) -> list[OwnerOutcome]:
        """Return the outcome of each owner, by name; `within` is an asked wait in seconds."""
        names = {*self.waits, *self.missed, *self.never, *self.expired}
        each = self.load.each
        return [
            OwnerOutcome(
                owner=name,
                **_of_waits(self.waits.get(name, array("d")), within=within, each=each),
                missed=self.missed[name] * each,
                never=self.never[name] * each,
                expired=self.expired[name] * each,
            )
            for name in sorted(names)
            if self.waits.get(name) or self.missed[name] or self.never[name] or self.expired[name]
        ]


def recorded_owners(waits: Mapping[str, Sequence[float]], *, each: int) -> list[OwnerOutcome]:
    """Return the same of recorded waits."""
    return [
        OwnerOutcome(owner=name, **_of_waits(found, within=None, each=each))
        for name, found in sorted(waits.items())
        if found
    ]


def _of_waits(waits: Sequence[float], *, within: float | None, each: int) -> dict[str, Any]:
    ordered = sorted(waits)
    if not ordered:
        return {"started": 0, "p50": None, "p95": None, "longest": None}
    late = None if within is None else sum(wait > within for wait in ordered) / len(ordered)
    return {
        "started": len(ordered) * each,
        "p50": part_of(ordered, 0.5),
        "p95": part_of(ordered, 0.95),
        "longest": ordered[-1],
        "late_share": late,
    }


@dataclass(slots=True)
class _Account:
    weight: float
    cap: int
    waiting: int = 0
    running: int = 0
    is_counted: bool = False
    at: int = 0
    fluid: float = 0.0
    entitled: float = 0.0
    received: float = 0.0


class Shares:
    """The worker time that owners got while their calls waited and no cap kept them.

    An owner is entitled to its part, by weight, of the slots among the owners with work.
    """

    def __init__(self, load: Load) -> None:
        self._slots = load.slots
        self._accounts = {name: _Account(one.weight, one.cap) for name, one in load.owners.items()}
        self._weights = 0.0
        self._fluid = 0.0
        """What an owner of weight 1 was entitled to so far, had it always had work."""
        self._at = 0

    def waits(self, now: int, owner: str) -> None:
        self._change(now, owner, waiting=1)

    def leaves(self, now: int, owner: str) -> None:
        self._change(now, owner, waiting=-1)

    def starts(self, now: int, owner: str) -> None:
        self._change(now, owner, waiting=-1, running=1)

    def ends(self, now: int, owner: str) -> None:
        self._change(now, owner, running=-1)

    def jain(self) -> float | None:
        """Return Jain's index over the owners that had to wait; None if fewer than two had to."""
        parts = [one.received / one.entitled for one in self._accounts.values() if one.entitled > 0]
        return jain(parts) if len(parts) > 1 else None

    def _change(self, now: int, owner: str, *, waiting: int = 0, running: int = 0) -> None:
        one = self._accounts.setdefault(owner, _Account(1.0, 0))
        if self._weights:
            self._fluid += (now - self._at) * self._slots / self._weights
        self._at = now
        if one.is_counted:
            one.entitled += (self._fluid - one.fluid) * one.weight
            one.received += (now - one.at) * one.running
        had_work = one.waiting + one.running > 0
        one.waiting += waiting
        one.running += running
        has_work = one.waiting + one.running > 0
        if had_work != has_work:
            self._weights += one.weight if has_work else -one.weight
        one.is_counted = one.waiting > 0 and (one.cap == 0 or one.running < one.cap)
        one.at, one.fluid = now, self._fluid
