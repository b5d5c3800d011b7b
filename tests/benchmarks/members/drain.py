"""drain: how fast no-op tasks of 100 owners are done that were published beforehand."""

from collections.abc import Callable

from tests.benchmarks.rows import Row, compared
from tests.benchmarks.sides import Side
from tests.benchmarks.world import BenchmarkError, Call, World

OWNERS = 100
SLOTS = (2, 4)
SECONDS = 85.0
"""The most that the rounds of one number of slots take."""


def measure(world: World) -> list[Row]:
    """Compare with stock Celery at its best, on 2 slots and on 4."""
    count = world.pick(3_000, 2_000)

    def fair(slots: int) -> float:
        return drained(world, world.fair, owners=OWNERS, count=count, slots=slots)

    return [
        beside_stock(world, fair, slots=slots, count=count, at_least=3.0)
        for slots in SLOTS[: world.pick(len(SLOTS), 1)]
    ]


def beside_stock(
    world: World, drain: Callable[[int], float], *, slots: int, count: int, at_least: float
) -> Row:
    """Compare the tasks/s of a drain on this many slots with stock Celery's best, in turn."""
    stock: list[float] = []
    ours: list[float] = []
    for _ in world.turns(seconds=SECONDS):
        stock.append(drained(world, world.stock, owners=OWNERS, count=count, slots=slots))
        ours.append(drain(slots))
    return compared(
        ours,
        stock,
        what=f"{slots} slots, {OWNERS} owners",
        unit="tasks/s",
        against="stock Celery",
        at_least=at_least,
    )


def drained(world: World, side: Side, *, owners: int, count: int, slots: int) -> float:
    """Return the tasks/s at which one worker drains `count` tasks, seen from outside."""
    world.begin()
    world.publish(side, (Call("bench.count", f"o{number % owners}") for number in range(count)))
    waiting = world.redis.llen(side.queue)
    if waiting != count:
        raise BenchmarkError(f"{waiting} of {count} published tasks wait in {side.queue}")
    with world.workers(side, slots=slots) as stack:
        return world.wait_done(stack, count)
