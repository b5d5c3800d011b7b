"""durable: how fast no-op durable runs are done that were submitted before the worker starts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median
from typing import Any

from django.conf import settings
from django.test import override_settings

from fleet.stack.stack import Stack
from jobs.core.keyring import new_key
from tests.benchmarks.members.drain import OWNERS, SLOTS, beside_stock
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import BenchmarkError, World

FEW = 10
RECORDED_SECONDS = 60.0
POLL_SECONDS = 0.005


def measure(world: World) -> list[Row]:
    """Compare with plain tasks on stock Celery at its best; 10,000 owners with 10; a key ring."""
    world.commits_are_durable()
    count = world.pick(6_000, 2_000)
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
    return [*rows, lag, _owners(world), _encrypted(world)]


def _owners(world: World) -> Row:
    many = world.pick(10_000, 500)
    count = world.pick(10_000, 2_000)
    rates: dict[int, list[float]] = {FEW: [], many: []}
    for _ in range(world.rounds):
        for owners, found in rates.items():
            found.append(drained(world, owners=owners, count=count, slots=2)[0])
    return compared(
        rates[many],
        rates[FEW],
        what=f"2 slots, {many:,} owners",
        unit="tasks/s",
        against=f"{FEW} owners",
        at_least=0.9,
    )


def _encrypted(world: World) -> Row:
    """Compare with and without a key ring, in turn."""
    ring, count = new_key(1), world.pick(10_000, 2_000)
    keys = {"FAIRSHIFT_ENCRYPTION_KEYS": ring}
    with_ring = replace(world, environment={**world.environment, **keys})
    rates: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(world.rounds):
        for is_on, found in rates.items():
            values = {**settings.FAIRSHIFT, "ENCRYPTION_KEYS": ring if is_on else ""}
            with override_settings(FAIRSHIFT=values):
                one = with_ring if is_on else world
                found.append(drained(one, owners=OWNERS, count=count, slots=2)[0])
    return compared(
        rates[True],
        rates[False],
        what="2 slots, encrypted at rest",
        unit="tasks/s",
        against="not encrypted",
        at_least=0.9,
    )


def drained(world: World, *, owners: int, count: int, slots: int) -> tuple[float, float]:
    """Return the tasks/s at which one worker drains `count` runs, and the rows' lag in seconds.

    Seen from outside: the tasks count in Redis, and plain SQL asks the rows.
    """
    from jobs.system.sweep import publish_after_flush

    world.begin()
    # As an earlier sweep does: otherwise the worker first primes the emptied queue.
    publish_after_flush()
    submissions = submitted([f"o{number}" for number in range(owners)], count=count)
    waiting = world.redis.llen(world.fair.queue)
    if waiting != count:
        raise BenchmarkError(f"{waiting} hints of {count} submitted runs wait")
    with world.workers(world.fair, slots=slots) as stack:
        rate = world.wait_done(stack, count)
        return rate, wait_recorded(world, stack, submissions)


def wait_recorded(world: World, stack: Stack, submissions: Sequence[int]) -> float:
    """Return after how many seconds all rows have succeeded."""
    began = time.monotonic()
    while missing := _unrecorded(submissions):
        stack.watch()
        if time.monotonic() > began + RECORDED_SECONDS:
            raise BenchmarkError(f"{missing} rows have not succeeded; {world.log_ends()}")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


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
