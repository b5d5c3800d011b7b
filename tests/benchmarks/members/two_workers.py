"""two_workers: whether a worker holds slow work back while another one is free."""

from __future__ import annotations

import time
from statistics import median

from tests.benchmarks.rows import Row
from tests.benchmarks.sides import Side
from tests.benchmarks.world import Call, World

WORKERS = 2
SLOTS = 2
RUN_SECONDS = 1.0
TASKS = 8
IDEAL_SECONDS = TASKS * RUN_SECONDS / (WORKERS * SLOTS)


def measure(world: World) -> list[Row]:
    """Compare with every slot always busy; stock Celery at its best is shown beside it."""
    stock = _measured(world, world.stock, rounds=1)
    fair = _measured(world, world.fair, rounds=world.rounds)
    what = f"{TASKS} tasks of {RUN_SECONDS:g} s on {WORKERS} workers of {SLOTS} slots"
    return [
        Row(
            what=what,
            unit="s",
            figure=median(fair),
            baseline=IDEAL_SECONDS,
            against="ideal",
            at_most=2.3,
            of_figure=True,
            samples={"fair": fair},
        ),
        Row(
            what="the same on stock Celery, tuned for throughput",
            unit="s",
            figure=median(stock),
            baseline=IDEAL_SECONDS,
            against="ideal",
            samples={"stock": stock},
        ),
    ]


def _measured(world: World, side: Side, *, rounds: int) -> list[float]:
    world.begin()
    took = []
    with world.workers(side, slots=SLOTS, count=WORKERS) as stack:
        world.warm_up(side, stack, slots=WORKERS * SLOTS)
        for number in range(rounds):
            owners = [f"{name}-{number}" for name in ("acme", "globex")]
            began = time.monotonic()
            world.publish(
                side,
                (
                    Call("bench.work", owners[task % 2], (owners[task % 2], RUN_SECONDS))
                    for task in range(TASKS)
                ),
            )
            runs = [ran for owner in owners for ran in world.wait_ran(stack, owner, TASKS // 2)]
            took.append(max(ran.ended for ran in runs) - began)
    return took
