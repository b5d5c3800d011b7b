"""recovery: how long the runs of a killed worker wait until they start elsewhere."""

import time
from statistics import median

from fleet.stack.programs import beat, system_worker
from tests.benchmarks.figures import Ran
from tests.benchmarks.rows import Row
from tests.benchmarks.world import START_SECONDS, BenchmarkError, World

SLOTS = 2
RUN_SECONDS = 5.0
LONG_SECONDS = 120.0
RESCUE_EVERY_SECONDS = 5.0  # the interval of its PeriodicTask
ROUNDS = 2  # of half a minute and more each


def measure(world: World) -> list[Row]:
    """Compare the last start after a kill with a lease, a sweep, and a second for promotion."""
    from jobs.core.conf import setting

    bound = setting("LEASE_SECONDS") + RESCUE_EVERY_SECONDS
    took = [_recovered(world, number) for number in range(min(ROUNDS, world.rounds))]
    return [
        Row(
            what=f"worker killed with {SLOTS} runs: until its last one starts elsewhere",
            unit="s",
            figure=median(took),
            baseline=bound,
            against="lease and sweep",
            at_most=bound + 1,
            of_figure=True,
            samples={"seconds": took},
        )
    ]


def _recovered(world: World, number: int) -> float:
    """Return the seconds from the kill to the last start of what the killed worker ran."""
    from jobs import submit_many
    from jobs.models import Owner

    world.begin()
    owner = f"killed-{number}"
    Owner.objects.create(slug=owner)
    calls = [
        {"owner": owner, "seconds": RUN_SECONDS, "number": number} for number in range(2 * SLOTS)
    ]
    victim, other = (world.fair.program(name, SLOTS) for name in ("victim", "other"))
    with world.up(system_worker(), beat(), other) as stack, world.up(victim) as lost:
        for part in (stack, lost):
            part.wait_ready(seconds=START_SECONDS)
        _wait_running(submit_many("bench.work", calls, owner=owner).pk, len(calls))
        lost.kill_group(victim.name)
        killed_at = time.monotonic()
        runs = world.wait_ran(stack, owner, len(calls), patience=LONG_SECONDS)
    return _last_start(runs, killed_at)


def _last_start(runs: list[Ran], killed_at: float) -> float:
    # A run writes when it ends: of those that were killed, only the second start is known.
    again = [ran.began for ran in runs if ran.began > killed_at]
    if len(again) != SLOTS:
        raise BenchmarkError(f"{len(again)} runs started after the kill of a worker with {SLOTS}")
    return max(again) - killed_at


def _wait_running(submission_id: int, want: int) -> None:
    """Return when this many rows of a submission are running."""
    from jobs.models import Run

    running = Run.objects.filter(submission_id=submission_id, state="running")
    deadline = time.monotonic() + RUN_SECONDS / 2
    while running.count() < want:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{running.count()} of {want} runs were running")
        time.sleep(0.02)
