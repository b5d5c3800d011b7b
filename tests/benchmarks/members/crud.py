"""crud: how many jobs a minute are created, updated, deleted: in bulk, by message, one by one.

One by one also beside the rows that django-celery-beat has for a schedule, in the same rounds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from celery import Celery

from jobs.management.stack.programs import system_worker
from jobs.management.stack.stack import Stack
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import MEMBER_SECONDS, START_SECONDS, BenchmarkError, World

OTHERS = 10_000.0
"""Jobs a minute that others create, update or delete over their API, at their limit."""

OWNER = "crud"
INTERVALS = (1, 2, 5, 15, 60, 1_440)
VERBS = ("create", "update", "delete")
POLL_SECONDS = 0.02


def measure(world: World) -> list[Row]:
    """Measure the ways, each from a call or a publish to the commit, with fsync on."""
    from jobs.models import Owner

    world.commits_are_durable()
    Owner.objects.get_or_create(slug=OWNER)
    rows = []
    for what, rates, at_least in (
        ("in bulk", _called, 60.0),
        ("by message, one job each", _by_message, 10.0),
    ):
        found = [rates(world) for _ in world.turns()]
        rows += _beside_others(found, what=what, at_least=at_least)
    return rows + _one_call_each(world)


def _beside_others(
    found: Sequence[Mapping[str, float]], *, what: str, at_least: float
) -> list[Row]:
    return [
        compared(
            _a_minute(found, verb),
            [OTHERS],
            what=f"{verb}, {what}",
            unit="jobs/min",
            against="10,000 a minute",
            at_least=at_least,
        )
        for verb in VERBS
    ]


def _one_call_each(world: World) -> list[Row]:
    ours, theirs = [], []
    for _ in world.turns(seconds=MEMBER_SECONDS / 3):
        ours.append(_one_by_one(world))
        theirs.append(_periodic_tasks(world))
    return _beside_others(ours, what="one call each", at_least=6.0) + [
        compared(
            _a_minute(ours, verb),
            _a_minute(theirs, verb),
            what=f"{verb}, one call each",
            unit="jobs/min",
            against=f"PeriodicTask, {method}",
            at_least=1.0,
        )
        for verb, method in zip(VERBS, ("objects.create()", "save()", "delete()"), strict=True)
    ]


def _a_minute(found: Sequence[Mapping[str, float]], verb: str) -> list[float]:
    return [60 * each[verb] for each in found]


def _called(world: World) -> dict[str, float]:
    from jobs import delete_jobs, upsert_jobs

    count = world.pick(100_000, 5_000)
    return _rates(
        count, lambda jobs: [upsert_jobs(OWNER, jobs)], lambda keys: delete_jobs(OWNER, keys)
    )


def _one_by_one(world: World) -> dict[str, float]:
    from jobs import delete_jobs, upsert_jobs
    from jobs.models import Owner

    owner = Owner.objects.get(slug=OWNER)
    count = world.pick(3_000, 200)
    return _rates(
        count,
        lambda jobs: [upsert_jobs(owner, [job]) for job in jobs],
        lambda keys: [delete_jobs(owner, [key]) for key in keys],
    )


def _periodic_tasks(world: World) -> dict[str, float]:
    """Return the rows/s of django-celery-beat by the ORM, with the fields that a job has too."""
    from django_celery_beat.models import IntervalSchedule, PeriodicTask

    count = world.pick(1_000, 100)
    minutes = IntervalSchedule.MINUTES
    schedules = {
        every: IntervalSchedule.objects.get_or_create(every=every, period=minutes)[0]
        for every in INTERVALS
    }
    given = [
        {
            "name": job["key"],
            "task": job["task"],
            "kwargs": json.dumps(job["arguments"]),
            "description": job["name"],
            "interval": schedules[job["interval_minutes"]],
            "priority": job["priority"],
        }
        for job in _jobs(count, turn=0)
    ]
    made: list[PeriodicTask] = []

    def update() -> None:
        for row in made:
            row.priority = VERBS.index("update")
            row.save()

    def left(verb: str) -> int:
        mine = PeriodicTask.objects.filter(interval__in=schedules.values(), queue=None)
        return mine.count() if verb == "delete" else mine.filter(priority=VERBS.index(verb)).count()

    return _timed(
        count,
        {
            "create": lambda: made.extend(PeriodicTask.objects.create(**row) for row in given),
            "update": update,
            "delete": lambda: [row.delete() for row in made],
        },
        left,
    )


def _rates(
    count: int, upsert: Callable[[list[dict[str, Any]]], Any], delete: Callable[[list[str]], Any]
) -> dict[str, float]:
    """Return the jobs/s of each verb."""
    _begin()
    created, updated = _jobs(count, turn=0), _jobs(count, turn=1)
    keys = [job["key"] for job in created]
    return _timed(
        count,
        {
            "create": lambda: upsert(created),
            "update": lambda: upsert(updated),
            "delete": lambda: delete(keys),
        },
        _done,
    )


def _timed(
    count: int, acts: Mapping[str, Callable[[], Any]], done: Callable[[str], int]
) -> dict[str, float]:
    """Return the rate of each act per second; `done` says how many rows it has left so."""
    rates = {}
    for verb, act in acts.items():
        began = time.monotonic()
        act()
        rates[verb] = count / (time.monotonic() - began)
        if done(verb) != (0 if verb == "delete" else count):
            raise BenchmarkError(f"{verb}: {done(verb)} of {count} rows are so")
    return rates


def _by_message(world: World) -> dict[str, float]:
    """Send from an app that knows nothing of Fairshift; the shipped system worker reads."""
    count = world.pick(50_000, 2_000)
    world.begin()
    _begin()
    rates = {}
    reader = system_worker()
    opened = {**reader.environment, "FAIRSHIFT_INBOX_ALLOWED": f"{OWNER}:*"}
    with world.up(replace(reader, environment=opened)) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        for turn, verb in enumerate(VERBS):
            sent: Sequence[tuple[str, Any]] = [
                ("delete", [job["key"]]) if verb == "delete" else ("upsert", [job])
                for job in _jobs(count, turn=turn)
            ]
            _send(world, sent)
            rates[verb] = _read(world, stack, verb, count)
    return rates


def _send(world: World, calls: Sequence[tuple[str, Any]]) -> None:
    app = Celery("elsewhere", broker=world.fair.app.conf.broker_url, set_as_current=False)
    with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
        for verb, jobs in calls:
            name = f"fairshift.{verb}_jobs"
            app.send_task(name, (OWNER, jobs), queue="inbox", producer=producer)
    app.close()


def _read(world: World, stack: Stack, verb: str, count: int) -> float:
    """Have the inbox read as the pulse has it, each second; return the calls/s until the last."""
    want = 0 if verb == "delete" else count
    asked_at = 0.0

    def is_read() -> bool:
        nonlocal asked_at
        if time.monotonic() - asked_at >= 1:
            asked_at = time.monotonic()
            world.fair.app.send_task("fairshift.system.read_inbox", queue="system")
        return _done(verb) == want

    took = world.wait(
        is_read,
        what=lambda: f"{verb}: {_done(verb)} of {count}",
        seconds=10 * START_SECONDS,
        every=POLL_SECONDS,
        stack=stack,
    )
    return count / took


def _jobs(count: int, *, turn: int) -> list[dict[str, Any]]:
    return [
        {
            "key": f"device-{number:06}",
            "name": f"Backup of device {number}",
            "task": "bench.work",
            "arguments": {"owner": OWNER, "number": number},
            "labels": {"site": f"site-{number % 100}"},
            "interval_minutes": INTERVALS[number % len(INTERVALS)],
            "priority": turn,
        }
        for number in range(count)
    ]


def _begin() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs_job CASCADE")


def _done(verb: str) -> int:
    """Return how many jobs are as a verb leaves them; after a deletion, how many are left."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM jobs_job WHERE %s OR priority = %s",
            [verb == "delete", VERBS.index(verb)],
        )
        return int(cursor.fetchone()[0])
