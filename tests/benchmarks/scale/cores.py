"""Time, and cores that jobs share equally: the base of the simulation. Pure."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

Then = Callable[[], None]


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


class Cores:
    """Processor sharing: each job has a core of its own, or an equal part of all."""

    def __init__(self, clock: Clock, cores: float) -> None:
        self.used = 0.0
        """CPU seconds of all jobs that have ended."""
        self._clock = clock
        self._cores = cores
        self._jobs: list[tuple[float, int, Then]] = []
        self._number = count()
        self._work = 0.0
        """CPU seconds that each job has got that has been here from the beginning on."""
        self._at = 0.0
        self._version = 0

    def run(self, seconds: float, then: Then) -> None:
        """Have a job of this CPU time done; `then` is called at its end."""
        self._advance()
        self.used += seconds
        heapq.heappush(self._jobs, (self._work + seconds, next(self._number), then))
        self._plan()

    def _advance(self) -> None:
        now = self._clock.now
        self._work += (now - self._at) * self._speed()
        self._at = now

    def _speed(self) -> float:
        return min(1.0, self._cores / len(self._jobs)) if self._jobs else 0.0

    def _plan(self) -> None:
        self._version += 1
        if self._jobs:
            version, left = self._version, max(0.0, self._jobs[0][0] - self._work)
            self._clock.after(left / self._speed(), lambda: self._end(version))

    def _end(self, version: int) -> None:
        if version != self._version:
            return  # another job has come or ended since
        self._advance()
        _, _, then = heapq.heappop(self._jobs)
        self._plan()
        then()


class Thread:
    """One thread on shared cores: its jobs run one after the other."""

    def __init__(self, cores: Cores) -> None:
        self._cores = cores
        self._jobs: deque[tuple[float, Then]] = deque()
        self._is_busy = False

    def run(self, seconds: float, then: Then) -> None:
        """Have a job done behind those that wait."""
        self._jobs.append((seconds, then))
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        self._is_busy = bool(self._jobs)
        if self._jobs:
            seconds, then = self._jobs.popleft()
            self._cores.run(seconds, lambda: self._ended(then))

    def _ended(self, then: Then) -> None:
        then()
        self._next()
