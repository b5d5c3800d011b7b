"""submit: how fast durable runs are submitted, rows and hints."""

import time
from collections.abc import Callable

from django.db import transaction

from tests.benchmarks.procrastinating import deferring
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.sides import Side
from tests.benchmarks.world import World

OWNER = "submitter"
BLOCK = 100
LEAST_ROUNDS = 5
ARRIVE_SECONDS = 5.0

Submits = Callable[[int], None]


def measure(world: World) -> list[Row]:
    """Compare submits with loops of stock `apply_async` and of Procrastinate's `defer`.

    The calls return when the rows are committed. `submit_many` has published its hints then; those
    of single submits are sent, and are waited for outside the measurement.
    """
    with deferring() as defer:
        rates = _rates(world, {**_ours(), "stock": _stock(world), "procrastinate": defer})
    bulk = _counts(world)["many"]
    stock, durable = "loop of stock apply_async", "loop of Procrastinate's defer"
    rounds = zip(rates["many"], rates["stock"], strict=True)
    worst = min(rounds, key=lambda pair: pair[0] / pair[1])
    many = f"submit_many of {bulk:,} runs"
    return [
        _row(rates, "many", "stock", what=many, against=stock, at_least=12.0),
        Row(
            what=f"{many}, the worst of {len(rates['many'])} rounds",
            unit="runs/s",
            figure=worst[0],
            baseline=worst[1],
            against=stock,
            at_least=12.0,
        ),
        _row(rates, "single", "stock", what="loop of submit", against=stock, at_least=0.4),
        _row(rates, "single", "procrastinate", what="the same", against=durable, at_least=1.0),
        _row(
            rates,
            "block",
            "stock",
            what=f"loop of submit, {BLOCK} in one atomic()",
            against=stock,
            at_least=2.0,
        ),
    ]


def _counts(world: World) -> dict[str, int]:
    """Return how many submits of each kind a round has."""
    return {
        "many": world.pick(5_000, 2_000),
        "single": world.pick(1_000, 100),
        "block": world.pick(1_000, 100),
        "stock": world.pick(2_000, 500),
        "procrastinate": world.pick(1_000, 100),
    }


def _ours() -> dict[str, Submits]:
    from jobs import submit, submit_many
    from jobs.models import Owner

    owner, _ = Owner.objects.get_or_create(slug=OWNER)

    def many(count: int) -> None:
        calls = [{"owner": OWNER, "number": number} for number in range(count)]
        submit_many("bench.work", calls, owner=OWNER)

    def single(count: int) -> None:
        for number in range(count):
            submit("bench.work", owner=owner, arguments={"owner": OWNER, "number": number})

    def block(count: int) -> None:
        for _ in range(count // BLOCK):
            with transaction.atomic():
                single(BLOCK)

    return {"many": many, "single": single, "block": block}


def _stock(world: World) -> Submits:
    task = world.stock.app.tasks["bench.work"]

    def stock(count: int) -> None:
        for number in range(count):
            task.apply_async((OWNER,), {"number": number})

    return stock


def _rates(world: World, kinds: dict[str, Submits]) -> dict[str, list[float]]:
    """Return submits a second of each kind, round by round."""
    counts = _counts(world)
    sides: dict[str, Side | None] = dict.fromkeys(kinds, world.fair)
    sides |= {"stock": world.stock, "procrastinate": None}
    for submits in kinds.values():
        submits(BLOCK)  # connections are opened, scripts loaded and statements planned
    rounds = max(world.rounds, world.pick(LEAST_ROUNDS, 1))
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, submits in kinds.items():
            rates[kind].append(_rate(world, sides[kind], submits, counts[kind]))
    return rates


def _rate(world: World, side: Side | None, submits: Submits, count: int) -> float:
    world.begin()
    began = time.monotonic()
    submits(count)
    seconds = time.monotonic() - began
    if side is not None:
        queue = side.queue
        # A submit on a busy machine leaves to the sweep what took longer than its deadline.
        world.wait(
            lambda: world.redis.llen(queue) == count,
            what=lambda: f"{world.redis.llen(queue)} of {count} messages are in {queue}",
            seconds=ARRIVE_SECONDS,
            every=0.01,
        )
    return count / seconds


def _row(
    rates: dict[str, list[float]],
    kind: str,
    baseline: str,
    *,
    what: str,
    against: str,
    at_least: float,
) -> Row:
    return compared(
        rates[kind],
        rates[baseline],
        what=what,
        unit="runs/s",
        against=against,
        at_least=at_least,
    )
