"""doubles: whether anything starts twice where nothing fails."""

from __future__ import annotations

from fleet.stack.programs import beat, system_worker
from tests.benchmarks.figures import starts_beyond_one
from tests.benchmarks.rows import Row
from tests.benchmarks.world import BenchmarkError, Call, World

WORKERS = 2
SLOTS = 2
OWNERS = 10
KINDS = ("plain", "durable")


def measure(world: World) -> list[Row]:
    """Count starts beyond one of plain tasks and durable runs, beside a system that looks on."""
    count = world.pick(20_000, 2_000)
    world.begin()
    with world.up(system_worker(), beat()) as system:
        system.wait_ready()
        durable(count)
        world.publish(
            world.fair,
            (
                Call("bench.work", f"p{number % OWNERS}", ("plain", 0.0, number))
                for number in range(count)
            ),
        )
        with world.workers(world.fair, slots=SLOTS, count=WORKERS) as stack:
            for kind in KINDS:
                world.wait_ran(stack, kind, count, patience=120)
            # A plain task that had been handed out twice, a double of it waits behind these.
            world.warm_up(world.fair, stack, slots=WORKERS * SLOTS)
            system.watch()
    runs = world.ran()
    rows = []
    for kind in KINDS:
        found = [ran for ran in runs if ran.owner == kind]
        if {ran.number for ran in found} != set(range(count)):
            raise BenchmarkError(f"not every {kind} run has started")
        rows.append(
            Row(
                what=f"{count:,} {kind} runs, {WORKERS} workers: starts beyond one",
                unit="",
                figure=starts_beyond_one(found),
                at_most=0,
                of_figure=True,
            )
        )
    return rows


def durable(count: int) -> None:
    """Submit durable runs of several owners, numbered through."""
    from jobs import submit_many
    from jobs.models import Owner

    for part in range(OWNERS):
        owner, _ = Owner.objects.get_or_create(slug=f"d{part}")
        calls = [{"owner": "durable", "number": number} for number in range(part, count, OWNERS)]
        submit_many("bench.work", calls, owner=owner)
