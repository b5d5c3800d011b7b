"""idle: how long a submit to an idle worker takes to start."""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from fleet.contract import HEADER
from tests.benchmarks.figures import percentile
from tests.benchmarks.rows import Row
from tests.benchmarks.sides import Side
from tests.benchmarks.world import World

SLOTS = 2
GAP_SECONDS = (0.01, 0.05)

LIMITS_MS = {"plain": {50: 5, 99: 50}, "durable": {50: 5, 99: 20}}
"""The most from call to start, by kind and percentile."""

Submit = Callable[[int], None]


def measure(world: World) -> list[Row]:
    """Submit in turn to stock Celery, to Fairshift, and durably; time each from call to start."""
    count = world.pick(300, 60)
    kinds: dict[str, Submit] = {
        "stock": _plain(world.stock),
        "plain": _plain(world.fair),
        "durable": _durable(),
    }
    world.begin()
    began: dict[tuple[str, int], float] = {}
    calls: dict[str, list[float]] = {kind: [] for kind in kinds}
    chance = random.Random(17)
    with ExitStack() as up:
        for side in (world.stock, world.fair):
            stack = up.enter_context(world.workers(side, slots=SLOTS))
            world.warm_up(side, stack, slots=SLOTS)
        for number in range(-3, count):  # the first ones open connections, and are not counted
            for kind, submit in kinds.items():
                time.sleep(chance.uniform(*GAP_SECONDS))
                began[kind, number] = time.monotonic()
                submit(number)
                calls[kind].append(1000 * (time.monotonic() - began[kind, number]))
        for kind in kinds:
            world.wait_ran(stack, kind, count + 3)
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    for ran in world.ran():
        if ran.number >= 0:
            took[ran.owner].append(1000 * (ran.began - began[ran.owner, ran.number]))
    rows = []
    for kind, limits in LIMITS_MS.items():
        for percent, limit in limits.items():
            row = _row(f"{kind}, p{percent}", percent, took[kind], took["stock"])
            rows.append(replace(row, at_most=limit, of_figure=True, samples={kind: took[kind]}))
        rows.append(_row(f"{kind}, the call alone, p50", 50, calls[kind], calls["stock"]))
    return rows


def _row(what: str, percent: float, found: list[float], stock: list[float]) -> Row:
    return Row(
        what=what,
        unit="ms",
        figure=percentile(found, percent),
        baseline=percentile(stock, percent),
        against="stock Celery, plain",
    )


def _plain(side: Side) -> Submit:
    """Return what calls a plain task as web code does, with a connection of Celery's own pool."""
    kind = "stock" if side.name == "stock" else "plain"

    def submit(number: int) -> None:
        side.app.send_task(
            "bench.work",
            (kind, 0.0, number),
            queue=side.queue,
            headers={HEADER: {"owner": kind}},
            ignore_result=True,
        )

    return submit


def _durable() -> Submit:
    from jobs import submit
    from jobs.models import Owner

    owner, _ = Owner.objects.get_or_create(slug="durable")

    def submitted(number: int) -> None:
        submit("bench.work", owner=owner, arguments={"owner": "durable", "number": number})

    return submitted
