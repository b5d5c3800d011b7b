"""durable: how fast no-op durable runs are done that were submitted before the worker starts."""

from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import median
from typing import Any

from jobs.management.stack.stack import Stack
from tests.benchmarks.members.drain import OWNERS, SECONDS, SLOTS, beside_stock
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import BenchmarkError, World

RECORDED_SECONDS = 60.0
POLL_SECONDS = 0.005


def measure(world: World) -> list[Row]:
    """Compare with plain tasks on stock Celery at its best, on 2 slots and on 4."""
    world.commits_are_durable()
    count = world.pick(3_000, 2_000)
    lags: list[float] = []

    def fair(slots: int) -> float:
        rate, lag = drained(world, owners=OWNERS, count=count, slots=slots)
        lags.append(1000 * lag)
        return rate

    rows = [
        beside_stock(world, fair, slots=slots, count=count, at_least=2.0)
        for slots in SLOTS[: world.pick(len(SLOTS), 1)]
    ]
    lag = Row(
        what="from the last completion until every row has succeeded",
        unit="ms",
        figure=median(lags),
        samples={"lag": lags},
    )
    return [*rows, lag, _with_lines(world, count // 2)]


def _with_lines(world: World, count: int) -> Row:
    """Compare tasks that log a line each with tasks that log none, in turn, on 2 slots."""
    rates: dict[str, list[float]] = {"bench.say": [], "bench.count": []}
    for _ in world.turns(seconds=SECONDS):
        for task, found in rates.items():
            rate, _lag = drained(world, owners=OWNERS, count=count, slots=SLOTS[0], task=task)
            found.append(rate)
    return compared(
        rates["bench.say"],
        rates["bench.count"],
        what=f"{SLOTS[0]} slots, a log line each",
        unit="tasks/s",
        against="no line",
        at_least=0.85,
    )


def drained(
    world: World, *, owners: int, count: int, slots: int, task: str = "bench.count"
) -> tuple[float, float]:
    """Return the tasks/s at which one worker drains `count` runs, and the rows' lag in seconds."""
    from jobs.system.sweep import publish_after_flush

    world.begin()
    # As an earlier sweep does: otherwise the worker first primes the emptied queue.
    publish_after_flush()
    submissions = submitted([f"o{number}" for number in range(owners)], count=count, task=task)
    return drained_of(world, submissions, count=count, slots=slots)


def drained_of(
    world: World, submissions: Sequence[int], *, count: int, slots: int
) -> tuple[float, float]:
    """Return the same of runs that are submitted, and whose hints are published.

    Seen from outside: the tasks count in Redis, and plain SQL asks the rows.
    """
    waiting = world.redis.llen(world.fair.queue)
    if waiting != count:
        raise BenchmarkError(f"{waiting} hints of {count} submitted runs wait")
    with world.workers(world.fair, slots=slots) as stack:
        rate = world.wait_done(stack, count)
        return rate, wait_recorded(world, stack, submissions)


def wait_recorded(world: World, stack: Stack, submissions: Sequence[int]) -> float:
    """Return after how many seconds all rows have succeeded."""
    return world.wait(
        lambda: not _unrecorded(submissions),
        what=lambda: f"{_unrecorded(submissions)} rows have not succeeded",
        seconds=RECORDED_SECONDS,
        every=POLL_SECONDS,
        stack=stack,
    )


def submitted(
    owners: Sequence[str],
    *,
    count: int,
    task: str = "bench.count",
    arguments: Mapping[str, Any] | None = None,
) -> list[int]:
    """Submit durable runs in equal parts, a submission an owner; return the submissions' ids."""
    from django.db import transaction

    from jobs import submit_many
    from jobs.models import Owner

    Owner.objects.bulk_create([Owner(slug=slug) for slug in owners], ignore_conflicts=True)
    calls = iter([arguments or {}] * count)
    # In one transaction, for time: a commit for each of 10,000 owners is not what is measured.
    with transaction.atomic():
        return [
            submit_many(task, list(islice(calls, count // len(owners))), owner=slug).pk
            for slug in owners
        ]


def _unrecorded(submissions: Sequence[int]) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM jobs_run WHERE submission_id = ANY(%s) AND state <> 'succeeded'",
            [list(submissions)],
        )
        return int(cursor.fetchone()[0])
