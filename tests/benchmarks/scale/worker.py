"""One simulated worker: how it takes, admits, runs and records. Pure.

The rules and their constants are the shipped ones; CPU times come from `Costs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from fleet.fairness.queue import BUFFER_SECONDS
from fleet.pool.lookahead import SHORT_SECONDS
from fleet.transport.taking import HAND_OVER_AT_ONCE
from fleet.worker.io_thread import ADMIT_AT_MOST, BATCH, END_SECONDS, REQUEST_SECONDS
from tests.benchmarks.scale.cores import Clock, Cores, Thread
from tests.benchmarks.scale.costs import Costs

MOST_TAKEN: Final = 256
"""Most messages of one take, as the transport has it."""
SHORTEST_SECONDS: Final = 1e-4
"""The expected time of runs that take none."""
BEFORE_TASK: Final = 0.5
"""The part of a child's CPU time before Celery begins to measure the run time of the task."""
LEARNED: Final = 0.1
"""The weight of a new run time beside those before it."""
SPREAD: Final = 0.1
"""By which part tasks are longer or shorter: without it, all slots would end at once."""


@dataclass(slots=True)
class Place:
    """What all workers share, and what is counted."""

    costs: Costs
    clock: Clock
    task_seconds: float
    postgres: Cores
    redis: Thread
    expected: float
    """The run time that the queue has learned."""
    chance: Random
    slots: int
    """Of all workers."""
    child_seconds: float
    """CPU seconds of a child for a run."""
    begun: int = 0
    ended: int = 0
    statements: int = 0
    wakes: int = 0
    worker_used: float = 0.0
    postgres_used: float = 0.0
    redis_used: float = 0.0

    def length(self) -> float:
        """Return how long the next task sleeps: not all slots end at the same moment."""
        self.begun += 1
        is_first = self.begun <= self.slots
        spread = self.chance.random() if is_first else self.chance.uniform(1 - SPREAD, 1 + SPREAD)
        return self.task_seconds * spread

    def snapshot(self) -> tuple[float, ...]:
        used = (self.worker_used, self.postgres_used, self.redis_used)
        return (self.ended, self.statements, self.wakes, *used)


class Worker:
    """One worker: its main process, the thread of PostgreSQL, and its children."""

    def __init__(self, place: Place, slots: int, cores: Cores) -> None:
        self._place = place
        self._slots = slots
        self._cores = cores
        self._main = Thread(cores, wake=place.costs.main_wake)
        self._idle = slots
        self._held = 0  # taken, and not ended
        self._arrived = 0  # and not handed over
        self._open = 0  # admitted, and not ended
        self._admitted = 0  # and not started
        self._requests = self._reports = 0
        self._is_taking = self._is_in_database = False
        self._due_at = float("inf")

    # --- take -------------------------------------------------------------------------------

    def take(self) -> None:
        """Take when a slot or a quarter of the window is free."""
        window = max(self._slots, int(self._slots * BUFFER_SECONDS / self._place.expected))
        room = window - self._held
        has_room = self._held < self._slots or 4 * room >= window
        if self._is_taking or self._arrived > HAND_OVER_AT_ONCE or not has_room:
            return
        self._is_taking = True
        count = max(1, min(MOST_TAKEN, room))
        self._held += count
        self._redis(count, partial(self._taken, count))

    def _taken(self, count: int) -> None:
        self._is_taking = False
        self._arrived += count
        for first in range(0, count, HAND_OVER_AT_ONCE):
            part = min(HAND_OVER_AT_ONCE, count - first)
            self._on_main(self._place.costs.main.run * part, partial(self._handed_over, part))

    def _handed_over(self, count: int) -> None:
        self._arrived -= count
        self._requests += count
        is_urgent = self._open < 2 * self._slots or self._requests >= BATCH
        self._wake_within(0.0 if is_urgent else REQUEST_SECONDS)
        self.take()

    # --- the thread of PostgreSQL -----------------------------------------------------------

    def _wake_within(self, seconds: float) -> None:
        at = self._place.clock.now + seconds
        if at < self._due_at:
            self._due_at = at
            self._place.clock.after(seconds, self._look)

    def _look(self) -> None:
        if self._is_in_database or self._place.clock.now < self._due_at - 1e-12:
            return
        self._is_in_database = True
        reports, self._reports = self._reports, 0
        requests = min(ADMIT_AT_MOST, self._requests)
        self._requests -= requests
        self._due_at = self._place.clock.now if self._requests else float("inf")
        admit = partial(self._statement, requests, partial(self._admitted_now, requests))
        self._statement(reports, partial(self._recorded, reports, admit))

    def _statement(self, runs: int, then: partial[None]) -> None:
        if not runs:
            then()
            return
        place = self._place
        seconds = place.costs.postgres.of(runs)
        place.statements += 1
        place.postgres_used += seconds
        flushed = partial(place.clock.after, place.costs.commit_seconds, then)
        place.postgres.run(seconds, flushed)

    def _recorded(self, reports: int, admit: partial[None]) -> None:
        if reports:
            self._on_main(self._place.costs.main.batch, lambda: None)
            self._redis(reports, lambda: None)
        admit()

    def _admitted_now(self, requests: int) -> None:
        self._is_in_database = False
        if requests:
            self._open += requests
            self._on_main(self._place.costs.main.batch, partial(self._start, requests))
        if self._due_at <= self._place.clock.now:
            self._look()

    # --- the slots --------------------------------------------------------------------------

    def _start(self, admitted: int) -> None:
        self._admitted += admitted
        while self._idle and self._admitted:
            self._idle -= 1
            self._begin()

    def _begin(self) -> None:
        """Have a child run the next one: it reads and decodes, then the task begins."""
        self._admitted -= 1
        cpu_seconds = self._place.child_seconds
        self._place.worker_used += cpu_seconds
        before = cpu_seconds * BEFORE_TASK
        task = partial(self._task, cpu_seconds - before)
        self._cores.run(before, task, is_low=True)

    def _task(self, cpu_seconds: float) -> None:
        place = self._place
        end = partial(self._end, place.clock.now)
        run = partial(self._cores.run, cpu_seconds, end, is_low=True)
        place.clock.after(place.length(), run)

    def _end(self, began_at: float) -> None:
        place = self._place
        place.ended += 1
        took = max(SHORTEST_SECONDS, place.clock.now - began_at)
        place.expected += LEARNED * (took - place.expected)
        has_next = place.expected <= SHORT_SECONDS and self._admitted > 0
        if has_next:
            self._begin()  # it waited in the child's pipe
        self._on_main(place.costs.main.run, partial(self._reported, is_free=not has_next))

    def _reported(self, *, is_free: bool) -> None:
        self._held -= 1
        self._open -= 1
        self._idle += is_free
        self._reports += 1
        is_urgent = self._open == 0 or self._reports >= BATCH
        self._wake_within(0.0 if is_urgent else END_SECONDS)
        self._start(0)
        self.take()

    # --- CPU time ---------------------------------------------------------------------------

    def _on_main(self, seconds: float, then: partial[None]) -> None:
        woken = self._main.wakes
        self._place.worker_used += self._main.run(seconds, then)
        self._place.wakes += self._main.wakes - woken

    def _redis(self, runs: int, then: partial[None]) -> None:
        seconds = self._place.costs.redis.of(runs)
        self._place.redis_used += seconds
        self._place.redis.run(seconds, then)
