"""A simulation of workers, PostgreSQL and Redis that drain a backlog of equal durable runs. Pure.

It has the shipped rules by which a worker takes, admits and records in batches, and what a batch
and a run cost in CPU time. It has no other knowledge of the program. What it leaves out is in
docs/operate/scale.md.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.benchmarks.scale.cores import Clock, Cores, Thread
from tests.benchmarks.scale.costs import Costs, Layout, Simulated
from tests.benchmarks.scale.worker import SHORTEST_SECONDS, Place, Worker

WARM: Final = 0.25
"""The part of the runs that is not counted: the windows fill."""


def simulate(costs: Costs, layout: Layout, *, task_seconds: float, runs: int = 0) -> Simulated:
    """Drain a backlog that never ends; return the rates behind the first part of `runs`."""
    clock = Clock()
    machines: list[Cores] = []

    def machine(cores: float) -> Cores:
        machines.append(Cores(clock, cores, crowding=costs.crowding))
        return machines[-1]

    shared = machine(costs.usable * layout.cores - costs.background)
    is_split = bool(layout.postgres_cores)

    def own(cores: float) -> Cores:
        return machine(costs.usable * cores) if is_split else shared

    redis = Thread(own(1.0))
    place = Place(
        costs,
        clock,
        task_seconds,
        own(layout.postgres_cores),
        redis,
        expected=task_seconds + costs.child.of(task_seconds) or SHORTEST_SECONDS,
        chance=Random(0),
        slots=layout.workers * layout.slots,
        child_seconds=costs.child.of(task_seconds),
    )
    workers = [Worker(place, layout.slots, own(layout.cores)) for _ in range(layout.workers)]
    for worker in workers:
        worker.take()
    runs = runs or max(4_000, 40 * layout.workers * layout.slots)
    while place.ended < WARM * runs and clock.step():
        pass
    before, at = place.snapshot(), clock.now
    while place.ended < runs and clock.step():
        pass
    seconds = clock.now - at
    ended, statements, wakes, of_main, of_postgres, of_redis = (
        after - earlier for after, earlier in zip(place.snapshot(), before, strict=True)
    )
    busy = sum(one.busy for one in machines)
    speed = sum(one.work for one in machines) / busy if busy else 1.0
    return Simulated(
        rate=ended / seconds,
        batches=statements / ended,
        wakes=wakes / ended,
        speed=speed,
        postgres_cores=of_postgres / seconds / speed,
        redis_cores=of_redis / seconds / speed,
        worker_cores=of_main / seconds / speed,
    )
