"""Time, and cores that jobs share equally: the base of the simulation. Pure."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Final

Then = Callable[[], None]
LOW: Final = 110 / 1024
"""The part of a core that Linux gives to a process of niceness 10, beside one of niceness 0."""


class Clock:
    """Calls what is due, in order of time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Then]] = []
        self._number = count()

    def after(self, seconds: float, then: Then) -> None:
        """Call `then` after this time."""
        heapq.heappush(self._due, (self.now + seconds, next(self._number), then))

    def step(self) -> bool:
        """Call what is due next; False if nothing is."""
        if not self._due:
            return False
        self.now, _, then = heapq.heappop(self._due)
        then()
        return True


@dataclass(slots=True)
class _Jobs:
    """Jobs of one priority, all at the same speed."""

    ends: list[tuple[float, int, Then]] = field(default_factory=list)
    work: float = 0.0
    """CPU seconds that each job has got that has been here from the beginning on."""
    speed: float = 0.0

    def left(self) -> float:
        """Return how long the next one takes at this speed."""
        if not self.ends or not self.speed:
            return inf
        return max(0.0, self.ends[0][0] - self.work) / self.speed


class Cores:
    """Processor sharing: each job has a core of its own, or a part of all.

    The parts of all jobs are equal, and those of low ones are LOW of them. A core is slower by the
    part `crowding` while all others are busy, too.
    """

    def __init__(self, clock: Clock, cores: float, *, crowding: float = 0.0) -> None:
        self.work = self.busy = 0.0
        """CPU seconds that jobs have got: what they take alone, and what they took."""
        self._clock = clock
        self._cores = cores
        self._crowding = crowding
        self._high, self._low = _Jobs(), _Jobs()
        self._number = count()
        self._at = 0.0
        self._version = 0

    def run(self, seconds: float, then: Then, *, is_low: bool = False) -> None:
        """Have a job of this CPU time done; `then` is called at its end."""
        self._advance()
        jobs = self._low if is_low else self._high
        heapq.heappush(jobs.ends, (jobs.work + seconds, next(self._number), then))
        self._plan()

    def _advance(self) -> None:
        passed = self._clock.now - self._at
        for jobs in (self._high, self._low):
            jobs.work += passed * jobs.speed
            self.work += passed * jobs.speed * len(jobs.ends)
        self.busy += passed * min(self._cores, len(self._high.ends) + len(self._low.ends))
        self._at = self._clock.now

    def _plan(self) -> None:
        self._version += 1
        high, low = self._high, self._low
        each = speeds(self._cores, len(high.ends), len(low.ends))
        speed = 1.0 - self._crowding * self._neighbours()
        high.speed, low.speed = (part * speed for part in each)
        left = min(high.left(), low.left())
        if left < inf:
            version = self._version
            self._clock.after(left, lambda: self._end(version))

    def _neighbours(self) -> float:
        """Return what part of the other cores is busy, for a core that is."""
        busy = min(self._cores, len(self._high.ends) + len(self._low.ends))
        return (busy - 1) / (self._cores - 1) if min(busy, self._cores) > 1 else 0.0

    def _end(self, version: int) -> None:
        if version != self._version:
            return  # another job has come or ended since
        first = min((self._high, self._low), key=_Jobs.left)
        self._advance()
        _, _, then = heapq.heappop(first.ends)
        self._plan()
        then()


def speeds(cores: float, high: int, low: int) -> tuple[float, float]:
    """Return what part of a core each high and each low job has."""
    if high + low <= cores:
        return 1.0, 1.0
    part = cores / (high + LOW * low)
    if part > 1.0:
        return 1.0, (cores - high) / low
    if LOW * part > 1.0:
        return (cores - low) / high if high else 1.0, 1.0
    return part, LOW * part


class Thread:
    """One thread on shared cores: its jobs run one after the other.

    A job that comes while it sleeps takes `wake` CPU seconds more.
    """

    def __init__(self, cores: Cores, *, wake: float = 0.0) -> None:
        self.wakes = 0
        self._wake = wake
        self._cores = cores
        self._jobs: deque[tuple[float, Then]] = deque()
        self._is_busy = False

    def run(self, seconds: float, then: Then) -> float:
        """Have a job done behind those that wait; return its CPU seconds with the wake-up."""
        if self._is_busy:
            self._jobs.append((seconds, then))
            return seconds
        self.wakes += 1
        seconds += self._wake
        self._jobs.append((seconds, then))
        self._next()
        return seconds

    def _next(self) -> None:
        self._is_busy = bool(self._jobs)
        if self._jobs:
            seconds, then = self._jobs.popleft()
            self._cores.run(seconds, lambda: self._ended(then))

    def _ended(self, then: Then) -> None:
        then()
        self._next()
