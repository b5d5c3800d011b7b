"""shares: the worker time of three owners of unlike weights and unlike run times."""

import time
from statistics import median

from fleet.transport import scripts
from tests.benchmarks.figures import contended, jain, received, share_error
from tests.benchmarks.rows import Row
from tests.benchmarks.world import Call, World

SLOTS = 4
WEIGHTS = {"one": 1.0, "two": 2.0, "four": 4.0}
RUN_SECONDS = {"one": 0.01, "two": 0.05, "four": 0.2}
SPARE = 1.6  # times what an owner can be given


def measure(world: World) -> list[Row]:
    """Compare the worker time that each received with its weight, while all have work."""
    seconds = world.pick(10, 4)
    errors, indexes = [], []
    parts: dict[str, list[float]] = {owner: [] for owner in WEIGHTS}
    for _ in world.turns():
        got = _shared(world, seconds=seconds)
        errors.append(100 * share_error(got, WEIGHTS))
        for owner, found in parts.items():
            found.append(got.get(owner, 0.0) / sum(got.values()))
        indexes.append(jain(got.get(owner, 0.0) / WEIGHTS[owner] for owner in WEIGHTS))
    what = "weights 1:2:4, runs of 10, 50 and 200 ms"
    return [
        Row(
            what=f"{what}: largest error",
            unit="%",
            figure=median(errors),
            at_most=5,
            of_figure=True,
            samples={"error": errors, **parts},
        ),
        Row(
            what=f"{what}: Jain's index",
            unit="",
            figure=median(indexes),
            baseline=1.0,
            against="equal",
            at_least=0.99,
            of_figure=True,
            samples={"index": indexes},
        ),
    ]


def _shared(world: World, *, seconds: float) -> dict[str, float]:
    """Return the worker seconds of each owner in a span in which all had work."""
    world.begin()
    settings = [part for name, weight in WEIGHTS.items() for part in (name, weight, 0, 0, 0, 0)]
    scripts.run(world.redis, world.fair.queue, "owner", *settings)
    for owner, run in RUN_SECONDS.items():
        share = WEIGHTS[owner] / sum(WEIGHTS.values())
        count = round(SPARE * SLOTS * seconds * share / run)
        world.publish(world.fair, (Call("bench.work", owner, (owner, run)),) * count)
    with world.workers(world.fair, slots=SLOTS) as stack:
        world.wait_ran(stack, "one", 1, patience=60)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            stack.watch()
            time.sleep(0.1)
    runs = world.ran()
    return received(runs, contended(runs))
