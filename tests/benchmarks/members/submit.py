"""submit: how fast durable runs are submitted, rows and hints."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.benchmarks.rows import Row, compared
from tests.benchmarks.sides import Side
from tests.benchmarks.world import BenchmarkError, World

OWNER = "submitter"


def measure(world: World) -> list[Row]:
    """Compare `submit_many`, and a loop of `submit`, with a loop of stock `apply_async`.

    The calls return when the rows are committed and the hints are published.
    """
    from jobs import submit, submit_many
    from jobs.models import Owner

    owner, _ = Owner.objects.get_or_create(slug=OWNER)
    task = world.stock.app.tasks["bench.work"]

    def many(count: int) -> None:
        calls = [{"owner": OWNER, "number": number} for number in range(count)]
        submit_many("bench.work", calls, owner=OWNER)

    def one_by_one(count: int) -> None:
        for number in range(count):
            submit("bench.work", owner=owner, arguments={"owner": OWNER, "number": number})

    def stock(count: int) -> None:
        for number in range(count):
            task.apply_async((OWNER,), {"number": number})

    bulk, single, loop = (world.pick(*of) for of in ((5_000, 2_000), (500, 100), (2_000, 500)))
    rates: dict[str, list[float]] = {"many": [], "one by one": [], "stock": []}
    for submits in (many, one_by_one, stock):
        submits(3)  # connections are opened, and scripts loaded
    for _ in range(world.rounds):
        rates["stock"].append(_rate(world, world.stock, stock, loop))
        rates["many"].append(_rate(world, world.fair, many, bulk))
        rates["one by one"].append(_rate(world, world.fair, one_by_one, single))
    against = "loop of stock apply_async"
    return [
        compared(
            rates["many"],
            rates["stock"],
            what=f"submit_many of {bulk:,} runs",
            unit="runs/s",
            against=against,
            at_least=12.0,
        ),
        compared(
            rates["one by one"],
            rates["stock"],
            what="loop of submit",
            unit="runs/s",
            against=against,
        ),
    ]


def _rate(world: World, side: Side, submits: Callable[[int], None], count: int) -> float:
    world.begin()
    began = time.monotonic()
    submits(count)
    seconds = time.monotonic() - began
    waiting = world.redis.llen(side.queue)
    if waiting != count:
        # A submit on a busy machine leaves to the sweep what took longer than its deadline.
        raise BenchmarkError(f"{waiting} of {count} messages are published to {side.queue}")
    return count / seconds
