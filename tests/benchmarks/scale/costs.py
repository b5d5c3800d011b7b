"""What a simulation is given, and what it returns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Linear:
    """CPU seconds of a batch: `batch`, and `run` for each run in it."""

    batch: float
    run: float

    def of(self, runs: float) -> float:
        return self.batch + self.run * runs


@dataclass(frozen=True, slots=True)
class Child:
    """CPU seconds of a child for a run, by how long its task sleeps: it finds cold caches then.

    `points` are seconds of sleep with their cost, the shortest first; lines are between them.
    """

    points: tuple[tuple[float, float], ...]

    def of(self, task_seconds: float) -> float:
        for (left, low), (right, high) in pairwise(self.points):
            if task_seconds <= right:
                return low + (high - low) * max(0.0, task_seconds - left) / (right - left)
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds by kind of process, and what else the simulation is calibrated with.

    A run is in two batches: it is admitted, and recorded.
    """

    main: Linear
    postgres: Linear
    redis: Linear
    child: Child
    main_wake: float = 0.0
    """CPU time of a main process for each time that it sleeps and is woken."""
    crowding: float = 0.0
    """By what part a core is slower while all others are busy, too."""
    commit_seconds: float = 0.0
    """How long a commit waits for the disk."""
    background: float = 0.0
    """Cores that an idle installation uses: beat, the system worker, heartbeats."""
    usable: float = 1.0
    """The part of each core that work gets: the rest is lost to waits of one process for another,
    and to other programs."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What runs where: `cores` for all together, or for each worker, PostgreSQL and Redis."""

    workers: int
    slots: int
    cores: float
    postgres_cores: float = 0.0
    """0: on the cores of the workers, and Redis as well. Otherwise Redis has one of its own."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Runs a second, and the parts of their cores that are busy (1: all)."""

    rate: float
    batches: float
    """Statements of PostgreSQL for a run."""
    wakes: float
    """Wake-ups of main processes for a run."""
    speed: float
    """What a core did of what it does while all others are idle."""
    postgres_cores: float
    redis_cores: float
    worker_cores: float
    """Of all workers together."""
