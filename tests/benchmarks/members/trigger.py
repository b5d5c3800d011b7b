"""trigger: how fast due jobs are triggered, of a million that recur."""

import sys
import time

from jobs.management.stack.programs import system_worker
from jobs.management.stack.stack import Program
from tests.benchmarks.million import MIX, OWNERS, put_in
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import World

LOAD_TEST = 288_000.0
"""Triggers a minute in project44's load test."""

PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.02


def measure(world: World) -> list[Row]:
    """Trigger consecutive minutes as fast as the shipped system worker does; and stock beat."""
    rows = []
    for history, minutes, at_least in (("none", 2, 10.0), ("full", 1, 4.0)):
        count = world.pick(1_000_000, 20_000)
        put_in(count, history=history)
        found = [_rate(world, minutes=minutes) for _ in world.turns(seconds=20)]
        rows.append(
            compared(
                [60 * rate for rate in found],
                [LOAD_TEST],
                what=f"history {history}: {count:,} jobs of {OWNERS:,} owners ({MIX})",
                unit="triggers/min",
                against="project44's load test",
                at_least=at_least,
            )
        )
    entries = world.pick(20_000, 500)
    baseline = [_beat_rate(world, entries=entries, seconds=world.pick(30, 10))]
    return [
        *rows,
        compared(
            rows[0].samples[rows[0].what],
            [60 * rate for rate in baseline],
            what="history none, beside beat",
            unit="triggers/min",
            against=f"django-celery-beat, {entries:,} entries each second",
        ),
    ]


def _rate(world: World, *, minutes: int) -> float:
    """Return triggers/s of some consecutive minutes, from the sending to the end of their ticks.

    A tick holds as many due times as one of a second would at ten times the load test.
    """
    from jobs import tasks
    from jobs.core.sql import now
    from jobs.models import Tick
    from jobs.recurring.pulse import TICK_SLOTS
    from jobs.schedules import slot_of

    world.begin()
    Tick.objects.all().delete()
    first = slot_of(now()) // 120 * 120
    made = Tick.objects.bulk_create(
        Tick(first_slot=slot, end_slot=slot + TICK_SLOTS, sent_at=now())
        for slot in range(first, first + 120 * minutes, TICK_SLOTS)
    )
    with world.up(system_worker()) as stack:
        stack.wait_ready(seconds=PATIENCE_SECONDS)
        # What a process does first: connections, scripts, expressions.
        for tick in made[:2]:
            tasks.tick.apply_async([tick.pk], queue="system")
        _wait_done(world, 2)
        before, began = world.redis.llen(world.fair.queue), time.monotonic()
        for tick in made[2:]:
            tasks.tick.apply_async([tick.pk], queue="system")
        seconds = _wait_done(world, len(made)) - began
    triggered = world.redis.llen(world.fair.queue) - before
    print(f"{triggered:,} in {seconds:.2f} s", file=sys.stderr)
    return triggered / seconds


def _wait_done(world: World, want: int) -> float:
    from jobs.models import Tick

    done = Tick.objects.filter(done_at__isnull=False)
    world.wait(
        lambda: done.count() >= want,
        what=lambda: f"{done.count()} of {want} ticks are done",
        seconds=PATIENCE_SECONDS,
        every=POLL_SECONDS,
    )
    return time.monotonic()


def _beat_rate(world: World, *, entries: int, seconds: float) -> float:
    """Return the sends/s of one stock beat with this many entries due each second."""
    from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

    world.begin()
    _forget_entries()
    second, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    PeriodicTask.objects.bulk_create(
        [
            PeriodicTask(name=f"entry-{number}", task="bench.count", interval=second)
            for number in range(entries)
        ],
        batch_size=5_000,
    )
    PeriodicTasks.update_changed()
    command = [sys.executable, "-m", "celery", "--app", "tests.benchmarks.stock_beat", "beat"]
    beat = Program("beat-stock", [*command, "--loglevel", "WARNING", "--pidfile="])
    try:
        with world.up(beat) as stack:
            world.wait(
                lambda: bool(world.redis.llen(world.stock.queue)),
                what=lambda: "beat has sent nothing",
                seconds=PATIENCE_SECONDS,
                every=POLL_SECONDS,
                stack=stack,
            )
            before, began = world.redis.llen(world.stock.queue), time.monotonic()
            time.sleep(seconds)
            sent = world.redis.llen(world.stock.queue) - before
            return sent / (time.monotonic() - began)
    finally:
        _forget_entries()


def _forget_entries() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        # Of each entry that Django deletes, django-celery-beat tells the beats.
        cursor.execute("TRUNCATE django_celery_beat_periodictask CASCADE")
