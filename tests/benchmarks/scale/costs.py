"""What a simulation is given, and what it returns. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Linear:
    """CPU seconds of a batch: `batch`, and `run` for each run in it."""

    batch: float
    run: float

    def of(self, runs: float) -> float:
        return self.batch + self.run * runs


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds by kind of process, and what else the simulation is calibrated with.

    A run is in two batches: it is admitted, and recorded.
    """

    main: Linear
    postgres: Linear
    redis: Linear
    child_next: float
    """A child's CPU time for a run that follows another one at once."""
    child_woken: float
    """The same for a run for which the child has slept."""
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
    postgres_cores: float
    redis_cores: float
    worker_cores: float
    """Of all workers together."""
