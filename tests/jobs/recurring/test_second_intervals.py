"""jobs/recurring/second_intervals.py: a job in seconds is a PeriodicTask in step with it, and runs
on a grid.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import connection, transaction
from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

from jobs import delete_jobs, tasks, upsert_jobs
from jobs.core.sql import now
from jobs.models import Job, Missed, Owner, Run
from jobs.recurring.second_intervals import sync_periodic_tasks, trigger_second_interval
from tests.jobs.recurring.scenes import OLD, recurring, runs_of
from tests.jobs.scenes import at_once


@pytest.fixture(autouse=True)
def _in_step_at_once(db: None) -> None:
    """What happens at the end of a transaction, at each statement: scenes have no end to see."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SET CONSTRAINTS seconds_job_is_made, seconds_job_is_gone, seconds_job_is_changed "
            "IMMEDIATE"
        )


def every(owner: Owner, seconds: int = 7, **fields: Any) -> Job:
    return recurring(owner, schedule="seconds", interval_seconds=seconds, **fields)


def entry(job: Job) -> PeriodicTask:
    return PeriodicTask.objects.select_related("interval").get(name=f"fairshift job {job.pk}")


def entries() -> list[str]:
    found = PeriodicTask.objects.filter(name__startswith="fairshift job")
    return list(found.order_by("id").values_list("name", flat=True))


def test_a_job_in_seconds_has_a_periodic_task(acme: Owner) -> None:
    """With its interval, its bounds, and the job's id, on the system's queue."""
    start, end = now(), now() + timedelta(days=1)
    job = every(acme, 7, start_at=start, end_at=end)
    recurring(acme)
    made = entry(job)
    assert entries() == [made.name]
    assert (made.task, made.args, made.queue) == ("fairshift.system.fire", f"[{job.pk}]", "system")
    assert (made.interval.every, made.interval.period) == (7, "seconds")
    assert (made.start_time, made.expires, made.enabled) == (start, end, True)
    made.full_clean()


def test_it_follows_the_job(acme: Owner) -> None:
    """In the same transaction, whoever writes it; beat is told."""
    job = every(acme)
    assert entry(job).interval == entry(every(acme)).interval
    told = PeriodicTasks.last_change()
    Job.objects.filter(pk=job.pk).update(interval_seconds=11, enabled=False)
    assert (entry(job).interval.every, entry(job).enabled) == (11, False)
    assert PeriodicTasks.last_change() > told
    Job.objects.filter(pk=job.pk).update(enabled=True)
    assert entry(job).enabled
    Job.objects.filter(pk=job.pk).update(schedule="manual")
    assert len(entries()) == 1
    Job.objects.filter(pk=job.pk).update(schedule="seconds")
    assert len(entries()) == 2
    job.delete()
    assert len(entries()) == 1


def test_what_does_not_concern_it_does_not_wake_beat(acme: Owner) -> None:
    """A new name or a pause is no change of the PeriodicTask."""
    job = every(acme)
    told = PeriodicTasks.last_change()
    Job.objects.filter(pk=job.pk).update(name="x", paused_until=now() + timedelta(hours=1))
    assert PeriodicTasks.last_change() == told


def test_a_bulk_keeps_them_in_step(acme: Owner) -> None:
    """Made, changed and deleted by the hundred."""
    elements = [
        {"key": f"k{n}", "task": "tests.add", "interval_seconds": 5, "arguments": {"x": n, "y": 1}}
        for n in range(100)
    ]
    upsert_jobs(acme, elements)
    assert len(entries()) == 100
    upsert_jobs(acme, [{**element, "interval_seconds": 9} for element in elements[:60]])
    found = PeriodicTask.objects.filter(name__startswith="fairshift job")
    assert found.filter(interval__every=9).count() == 60
    delete_jobs(acme, [element["key"] for element in elements[:90]])
    assert len(entries()) == 10


def test_a_rollback_leaves_no_trace(acme: Owner) -> None:
    """Neither job nor PeriodicTask."""
    with transaction.atomic():
        every(acme)
        transaction.set_rollback(True)
    assert entries() == []


def test_the_same_interval_is_made_once(committed: None, broker: redis.Redis, acme: Owner) -> None:
    """Also by two at once: django-celery-beat falls over two that are equal."""
    at_once(*(lambda n=n: every(acme, 4321, key=f"k{n}") for n in range(4)))
    assert IntervalSchedule.objects.filter(every=4321, period="seconds").count() == 1
    Job.objects.all().delete()
    assert entries() == []


def test_writers_of_jobs_wait_for_a_commit_and_for_no_transaction(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """Two that write jobs of the same intervals crosswise end both."""
    gate = threading.Barrier(2)

    def write(*intervals: int) -> None:
        with transaction.atomic():
            for interval in intervals:
                every(acme, interval, key=f"{intervals} {interval}")
                gate.wait(5)

    assert at_once(lambda: write(4321, 4322), lambda: write(4322, 4321)) == [None, None]
    assert IntervalSchedule.objects.filter(every__in=(4321, 4322)).count() == 2
    Job.objects.all().delete()
    assert entries() == []


def test_what_was_edited_behind_its_back_is_mended(acme: Owner) -> None:
    """Changed, deleted, left over; what is in step is not written."""
    changed, deleted, fine = (every(acme) for _ in range(3))
    ended = every(acme, end_at=now() - timedelta(hours=1))
    assert not entry(ended).enabled
    other = IntervalSchedule.objects.create(every=1, period="days")
    PeriodicTask.objects.filter(pk=entry(changed).pk).update(interval=other, task="celery.chord")
    entry(deleted).delete()
    PeriodicTask.objects.create(name="fairshift job 999999999", task="x", interval=other)
    before = entry(fine).date_changed
    assert sorted(sync_periodic_tasks()) == [changed.pk, deleted.pk, 999_999_999]
    assert entry(changed).interval.every == entry(deleted).interval.every == 7
    assert entry(fine).date_changed == before
    assert len(entries()) == 4 and sync_periodic_tasks() == []


def test_a_due_time_lies_on_the_grid_and_has_one_run(acme: Owner) -> None:
    """However often celery-beat sends."""
    job = every(acme, 3_601, effective_from=OLD)
    assert trigger_second_interval(job.pk) == 2 and trigger_second_interval(job.pk) == 0
    before, newest = runs_of(job)
    assert newest <= now() < newest + timedelta(seconds=3_601)
    assert newest - before == timedelta(seconds=3_601)
    assert int(newest.timestamp()) % 3_601 == 0


def test_not_before_the_schedule_holds(acme: Owner) -> None:
    """A job that was made a moment ago has passed no due time yet."""
    job = every(acme, 86_399, effective_from=now())
    assert trigger_second_interval(job.pk) == 0
    Job.objects.filter(pk=job.pk).update(effective_from=now() - timedelta(seconds=86_399))
    assert trigger_second_interval(job.pk) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"enabled": False},
        {"paused_until": "2200-01-01T00:00Z"},
        {"start_at": "2200-01-01T00:00Z"},
        {"end_at": "2020-01-01T00:00Z"},
        {"schedule": "manual"},
    ],
)
def test_what_is_off_paused_or_out_of_bounds_does_not_run(
    acme: Owner, fields: dict[str, Any]
) -> None:
    """Nor does what is gone."""
    job = every(acme, effective_from=OLD)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Job.objects.filter(pk=job.pk).update(**fields)
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert trigger_second_interval(job.pk) == trigger_second_interval(job.pk + 1) == 0
    assert not Run.objects.exists()


def test_runs_that_must_not_overlap(acme: Owner) -> None:
    """Are skipped and recorded here, too."""
    job = every(acme, 3_601, effective_from=OLD, overlap="skip")
    assert trigger_second_interval(job.pk) == 1
    assert Missed.objects.get(job=job).reason == "overlap" and trigger_second_interval(job.pk) == 0


def test_without_history_there_is_a_hint(committed: None, broker: redis.Redis, acme: Owner) -> None:
    """Of the newest due time alone: of others nobody would know that they had run."""
    job = every(acme, 3_601, effective_from=OLD, history_policy="none")
    assert trigger_second_interval(job.pk) == 1 and not Run.objects.exists()
    job.delete()


def test_the_system_does_it_by_itself(acme: Owner) -> None:
    """Its own tasks trigger jobs, repair PeriodicTasks, and record pauses that have ended."""
    job = every(acme, 3_601, effective_from=OLD)
    assert tasks.fire(job.pk) == 2
    entry(job).delete()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Job.objects.filter(pk=job.pk).update(paused_from=OLD, paused_until=now())
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert tasks.settle() == {"pauses": 1, "mended": 1}
    assert tasks.settle() == {"pauses": 0, "mended": 0}
    assert Missed.objects.get(job=job).reason == "paused"
