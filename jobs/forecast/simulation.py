"""A simulation of runs that start and end in their openings, from event to event. Pure.

Time is in seconds from now. An owner has a number of whole slots, which execute one run after the
other, and a fraction of a slot, which rests after each run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush
from math import ceil, floor, inf
from typing import Final

from jobs.forecast.shares import NEARLY, Capacity, Share
from jobs.windows.entries import CalendarHours

MOST_STEPS: Final = 300_000
"""Events after which the simulation stops, with an incomplete result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal runs. `delay` is their delay by a spread of starts."""

    count: int
    seconds: float
    """The expected time of one run in a slot."""
    calendars: tuple[CalendarHours, ...] = ()
    needed: timedelta = timedelta(0)
    priority: int = 5
    delay: timedelta = timedelta(0)
    wait: timedelta = timedelta(0)
    """None of the runs may start before this time from now."""
    names: tuple[str, ...] = ()
    """The names of a few targets."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An opening from `opens` to `closes`; runs may start in it from `begins` to `last`."""

    opens: float
    closes: float
    begins: float
    last: float


_SHUT: Final = Opened(inf, inf, inf, inf)
Openings = Callable[[Group, float], Opened | None]
"""Returns a group's first opening from a moment on."""


@dataclass(slots=True)
class _Waiting:
    group: Group
    left: int
    opened: Opened = _SHUT
    turn: int = 0
    """The number of the opening; events of earlier ones are ignored."""


@dataclass(slots=True)
class Course:
    """The result: starts by group (index) and opening, and the runs that are left."""

    starts: Counter[tuple[int, Opened]] = field(default_factory=Counter)
    ends: dict[tuple[int, Opened], float] = field(default_factory=dict)
    """When the last of these starts ends."""
    left: list[int] = field(default_factory=list)
    over: list[int] = field(default_factory=list)
    """For each group, the runs that are left after its first opening."""
    second: float = inf
    """The earliest second opening of a group."""
    first_start: float = inf
    last_end: float = 0
    is_whole: bool = True
    """False: the simulation stopped while runs could still have started."""
    share: float = 0
    """The runs' part of the slots, by weight, when the first one started."""


class Simulation:
    """One simulation; call `run` once."""

    def __init__(
        self,
        groups: Sequence[Group],
        capacity: Capacity,
        *,
        openings: Openings,
        end: float,
    ) -> None:
        """Nothing starts after `end`."""
        self.capacity = capacity
        self.openings = openings
        self.end = end
        self.share = Share(capacity)
        self.waiting = [_Waiting(group, group.count) for group in groups]
        self.course = Course(over=[0] * len(groups))
        self.now = 0.0
        # Heaps: groups that may start, by order; begins and last starts of openings; ends of runs.
        self.ready: list[tuple[tuple[int, float, timedelta], int, int]] = []
        self.begins: list[tuple[float, int]] = []
        self.lasts: list[tuple[float, int, int]] = []
        self.running: list[tuple[float, int, bool]] = []
        # Active runs: on whole slots (True), and on the fraction of one.
        self.active = {True: 0, False: 0}
        self.asking = 0
        self.rest = 0.0
        self.tokens = self.burst = max(1.0, capacity.rate or 0)

    def run(self) -> Course:
        for index, waiting in enumerate(self.waiting):
            if waiting.left:
                self._open_next(index, 0.0)
        steps = 0
        while (at := self._next_moment()) < inf:
            steps += 1
            if at > self.end and not self.running:
                break
            if steps > MOST_STEPS:
                self.course.is_whole = False
                break
            self._advance(at)
            self._end_runs()
            self._begin_openings()
            self._start()
            self._close()
            self.share.want(self.asking + self._active_count())
        self.course.left = [waiting.left for waiting in self.waiting]
        return self.course

    def _next_moment(self) -> float:
        moments = [
            self.running[0][0] if self.running else inf,
            self.begins[0][0] if self.begins else inf,
            self.lasts[0][0] if self.lasts else inf,
        ]
        if self.asking:
            moments += [self.share.next_change, self._rested_at(), self._token_at()]
        return max(self.now, min(moments))

    def _advance(self, to: float) -> None:
        span = to - self.now
        self.rest = max(0.0, self.rest - span * (self.share.amount % 1))
        self.tokens = min(self.burst, self.tokens + span * (self.capacity.rate or 0))
        self.share.advance(to)
        self.now = to

    def _end_runs(self) -> None:
        while self.running and self.running[0][0] <= self.now + NEARLY:
            _, count, is_whole = heappop(self.running)
            self.active[is_whole] -= count

    def _open_next(self, index: int, after: float) -> None:
        waiting = self.waiting[index]
        waiting.opened = self.openings(waiting.group, after) or _SHUT
        waiting.turn += 1
        if waiting.turn == 2:
            self.course.second = min(self.course.second, waiting.opened.begins)
        if waiting.opened.begins <= self.end:
            heappush(self.begins, (waiting.opened.begins, index))

    def _begin_openings(self) -> None:
        while self.begins and self.begins[0][0] <= self.now + NEARLY:
            _, index = heappop(self.begins)
            waiting = self.waiting[index]
            group = waiting.group
            order = (-group.priority, waiting.opened.begins, group.needed)
            heappush(self.ready, (order, index, waiting.turn))
            heappush(self.lasts, (min(waiting.opened.last, self.end), index, waiting.turn))
            self.asking += waiting.left
        self.share.want(self.asking + self._active_count())

    def _close(self) -> None:
        while self.lasts and self.lasts[0][0] <= self.now + NEARLY:
            _, index, turn = heappop(self.lasts)
            waiting = self.waiting[index]
            if waiting.turn != turn or not waiting.left:
                continue
            self.asking -= waiting.left
            if turn == 1:
                self.course.over[index] = waiting.left
            self._open_next(index, max(waiting.opened.closes, self.now))

    def _start(self) -> None:
        while self.ready:
            _, index, turn = self.ready[0]
            waiting = self.waiting[index]
            if waiting.turn != turn or not waiting.left:
                heappop(self.ready)
                continue
            count = min(self._room(), waiting.left, self._allowed())
            if count > 0:
                self._run(index, count, is_whole=True)
            elif self._has_part() and self._allowed():
                self._run(index, 1, is_whole=False)
                self.rest = waiting.group.seconds
            else:
                return

    def _run(self, index: int, count: int, *, is_whole: bool) -> None:
        waiting = self.waiting[index]
        waiting.left -= count
        self.asking -= count
        self.tokens -= count if self.capacity.rate else 0
        self.active[is_whole] += count
        ends = self.now + waiting.group.seconds
        heappush(self.running, (ends, count, is_whole))
        course = self.course
        course.starts[index, waiting.opened] += count
        # Never earlier than before: the runs of a group take the same time.
        course.ends[index, waiting.opened] = ends
        course.last_end = max(course.last_end, ends)
        if course.first_start == inf:
            course.first_start = self.now
            course.share = self.share.fair / self.capacity.slots

    def _room(self) -> int:
        """Return how many may start on whole slots."""
        amount = self.share.amount + NEARLY
        return min(floor(amount) - self.active[True], self._slots() - self._active_count())

    def _active_count(self) -> int:
        return sum(self.active.values())

    def _slots(self) -> int:
        return ceil(self.share.amount - NEARLY)

    def _has_part(self) -> bool:
        is_free = self._active_count() < self._slots()
        return is_free and self.rest <= NEARLY and self.share.amount % 1 > NEARLY

    def _allowed(self) -> int:
        return floor(self.tokens + NEARLY) if self.capacity.rate else self.asking

    def _rested_at(self) -> float:
        part = self.share.amount % 1
        return self.now + self.rest / part if self.rest > NEARLY and part > NEARLY else inf

    def _token_at(self) -> float:
        rate = self.capacity.rate
        return self.now + (1 - self.tokens) / rate if rate and self.tokens < 1 - NEARLY else inf
