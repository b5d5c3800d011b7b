"""lateness: how long after their minute has begun jobs of that minute are in the queue."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from fleet.stack.programs import beat, system_worker
from fleet.stack.stack import Stack
from tests.benchmarks.figures import percentile
from tests.benchmarks.rows import Row
from tests.benchmarks.world import MEMBER_SECONDS, START_SECONDS, BenchmarkError, World

SLOTS = 2
BUSY_SECONDS = 60.0
OWNERS = 100
LOOK_SECONDS = 0.02
"""How often somebody outside looks at the length of the queue: what is seen is that much late."""

LEAD_SECONDS = 10.0
"""The tasks that take the slots begin so long before the minute."""

SPARE = 50
"""More of them wait, so that a worker that looks ahead has what it wants."""

PATIENCE_SECONDS = 30.0

# Every other one by cron, the others once; of all minutes that are near each is due in one.
_INSERT = """
INSERT INTO jobs_job (owner_id, key, name, task, queue, payload, payload_key, labels, schedule,
    cron, zone, once_at, smooth, misfire, misfire_cap, overlap, retry_on, give_up_on, lock_key,
    history_policy, effective_from, enabled, changed_at)
SELECT o.id, 'late-' || n, '', 'bench.count', '', '[[], {}, {}]', 0, '{}',
    CASE WHEN n %% 2 = 0 THEN 'cron' ELSE 'once' END,
    CASE WHEN n %% 2 = 0 THEN %(cron)s ELSE '' END, '',
    CASE WHEN n %% 2 = 1 THEN %(minute)s::timestamptz END,
    false, 'once', 100, 'allow', '{}', '{}', '', %(history)s, now() - interval '1 day', true, now()
FROM generate_series(0, %(count)s - 1) AS n
JOIN jobs_owner AS o ON o.slug = 'late-owner-' || n / 2 %% %(owners)s
"""


def measure(world: World) -> list[Row]:
    """Measure jobs that keep their runs, and jobs that do not, while every slot is taken."""
    count = world.pick(10_000, 1_000)
    rows = []
    for history in ("full", "none"):
        found: dict[int, list[float]] = {50: [], 99: [], 100: []}
        for _ in world.turns(seconds=MEMBER_SECONDS / 2):
            seconds = _lateness(world, count=count, history=history)
            for percent, figures in found.items():
                figures.append(percentile(seconds, percent))
        rows += [
            Row(
                what=f"{count:,} of a minute, history {history}, {name}",
                unit="s",
                # The worst round, not the middle one: a minute that is late is late.
                figure=max(found[percent]),
                at_most=2.0 if percent == 99 else None,
                of_figure=True,
                samples={name: found[percent]},
            )
            for percent, name in ((50, "p50"), (99, "p99"), (100, "longest"))
        ]
    return rows


def _lateness(world: World, *, count: int, history: str) -> list[float]:
    """Return how late each job was in the queue, counted from its minute's first instant."""
    world.begin()
    _clear()
    with world.up(system_worker(), beat(), world.fair.program("fair-busy", SLOTS)) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        minute = -(-(time.time() + 2 * LEAD_SECONDS) // 60) * 60
        _put_in(count, minute=datetime.fromtimestamp(minute, UTC), history=history)
        time.sleep(minute - LEAD_SECONDS - time.time())
        waiting = _take_slots(world, stack)
        return _arrivals(world, stack, count=count, minute=minute, waiting=waiting)


def _clear() -> None:
    """Have no jobs, the system's own tasks, and due times from now on."""
    from django.db import connection
    from django_celery_beat.models import PeriodicTasks

    from jobs.core.sql import now
    from jobs.models import Cursor, Tick
    from jobs.schedules import slot_of
    from jobs.system.periodic import make_missing

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs_job CASCADE")
    Tick.objects.all().delete()
    Cursor.objects.update(slot=slot_of(now()))
    make_missing()
    PeriodicTasks.update_changed()


def _put_in(count: int, *, minute: datetime, history: str) -> None:
    from django.db import connection

    from jobs.models import Owner

    Owner.objects.bulk_create(
        [Owner(slug=f"late-owner-{number}") for number in range(OWNERS)], ignore_conflicts=True
    )
    given = {
        "count": count,
        "owners": OWNERS,
        "cron": f"{minute.minute} {minute.hour} * * *",
        "minute": minute,
        "history": history,
    }
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, given)
        cursor.execute("ANALYZE jobs_job")


def _take_slots(world: World, stack: Stack) -> int:
    """Take every ordinary slot for a minute; return how many messages wait then."""
    from jobs import submit_many
    from jobs.models import Owner, Run

    Owner.objects.get_or_create(slug="busy")
    calls = [{"owner": "busy", "seconds": BUSY_SECONDS}] * (SLOTS + SPARE)
    submission = submit_many("bench.work", calls, owner="busy")
    until = time.monotonic() + LEAD_SECONDS / 2
    while Run.objects.filter(submission=submission, state="running").count() < SLOTS:
        stack.watch()
        if time.monotonic() > until:
            raise BenchmarkError(f"the slots are not taken; {world.log_ends()}")
        time.sleep(LOOK_SECONDS)
    return int(world.redis.llen(world.fair.queue))


def _arrivals(
    world: World, stack: Stack, *, count: int, minute: float, waiting: int
) -> list[float]:
    seconds: list[float] = []
    while len(seconds) < count:
        length = int(world.redis.llen(world.fair.queue))
        late = time.time() - minute
        if late < 0 and length > waiting:
            raise BenchmarkError(f"{length - waiting} were in the queue {-late:.2f} s early")
        seconds += [late] * (length - waiting - len(seconds))
        stack.watch()
        if late > PATIENCE_SECONDS:
            raise BenchmarkError(f"{len(seconds)} of {count} are in the queue; {world.log_ends()}")
        time.sleep(LOOK_SECONDS)
    return seconds
