"""cpu: what an idle worker costs."""

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from jobs.management.stack.stack import Stack
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.sides import stock_program
from tests.benchmarks.world import World
from tests.processes import descendants

SLOTS = 2
SETTLE_SECONDS = 2.0


def measure(world: World) -> list[Row]:
    """Compare idle workers over the same spans: heartbeats fall into each.

    Stock's is as Celery ships it, with what Flower needs, as ours.
    """
    seconds = world.pick(10, 4)
    world.begin()
    used: dict[str, list[float]] = {"fair": [], "stock": []}
    with ExitStack() as up:
        stacks: dict[str, Stack] = {}
        shipped = partial(stock_program, options=("--task-events",))
        for side in (replace(world.stock, program=shipped), world.fair):
            stacks[side.name] = up.enter_context(world.workers(side, slots=SLOTS))
            world.warm_up(side, stacks[side.name], slots=SLOTS)
        time.sleep(SETTLE_SECONDS)
        for _ in world.turns():
            before = {name: _cpu_seconds(stack, name) for name, stack in stacks.items()}
            began = time.monotonic()
            time.sleep(seconds)
            minutes = (time.monotonic() - began) / 60
            for name, stack in stacks.items():
                used[name].append((_cpu_seconds(stack, name) - before[name]) / minutes)
    return [
        compared(
            used["fair"],
            used["stock"],
            what=f"idle worker of {SLOTS} slots",
            unit="CPU s/min",
            against="stock Celery as it ships, with events",
            at_most=1.0,
        )
    ]


def _cpu_seconds(stack: Stack, side: str) -> float:
    """Return the CPU time of a worker, its threads and its children, to the nanosecond."""
    main = stack.pid(f"{side}-0")
    pids = set() if main is None else {main} | descendants(main)
    return (
        sum(
            int(path.read_text().split()[0])
            for pid in pids
            for path in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        / 1e9
    )
