"""jobs/definitions/periodic_tasks.py: the PeriodicTask of a job in seconds agrees with it."""

import threading
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import transaction
from django.test import TestCase
from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

from jobs import delete_jobs, upsert_jobs
from jobs.core.sql import now
from jobs.definitions.periodic_tasks import sync_periodic_tasks
from jobs.models import Job, Owner
from tests.jobs.recurring.scenes import recurring
from tests.jobs.scenes import at_once, open_transaction


def upsert(owner: Owner, *keys: str, **fields: Any) -> None:
    """Upsert jobs that add 1 and 2."""
    element = {"task": "tests.add", "arguments": {"x": 1, "y": 2}, **fields}
    upsert_jobs(owner, [{"key": key, **element} for key in keys])


def upserted(owner: Owner, *keys: str, **fields: Any) -> None:
    """Upsert jobs, and do what follows a commit."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        upsert(owner, *keys, **fields)


def every(owner: Owner, seconds: int = 7, **fields: Any) -> Job:
    """Return a job made around the verbs."""
    return recurring(owner, schedule="seconds", interval_seconds=seconds, **fields)


def entry(key: str) -> PeriodicTask:
    job = Job.objects.get(key=key)
    return PeriodicTask.objects.select_related("interval").get(name=f"fairshift job {job.pk}")


def entries() -> int:
    return PeriodicTask.objects.filter(name__startswith="fairshift job").count()


def test_a_job_in_seconds_has_a_periodic_task(acme: Owner) -> None:
    """With its interval, its bounds, and the job's id, on the system's queue."""
    start, end = now(), now() + timedelta(days=1)
    upserted(acme, "a", interval_seconds=7, start_at=start, end_at=end)
    upserted(acme, "b", interval_minutes=7)
    made = entry("a")
    job_id = Job.objects.get(key="a").pk
    assert entries() == 1
    assert (made.task, made.args, made.queue) == ("fairshift.system.fire", f"[{job_id}]", "system")
    assert (made.interval.every, made.interval.period) == (7, "seconds")
    assert (made.start_time, made.expires, made.enabled) == (start, end, True)
    made.full_clean()


def test_it_follows_the_job(acme: Owner) -> None:
    """At once after the verb's commit; celery-beat reads them again."""
    upserted(acme, "a", "b", interval_seconds=7)
    assert entry("a").interval == entry("b").interval
    PeriodicTask.objects.filter(pk=entry("a").pk).update(last_run_at=now(), total_run_count=3)
    before = PeriodicTasks.last_change()
    upserted(acme, "a", interval_seconds=11, enabled=False)
    changed = entry("a")
    assert (changed.interval.every, changed.enabled, changed.total_run_count) == (11, False, 3)
    assert PeriodicTasks.last_change() > before
    upserted(acme, "a", interval_seconds=11)
    assert entry("a").enabled
    upserted(acme, "a", cron="@daily")
    assert entries() == 1
    upserted(acme, "a", interval_seconds=11)
    assert entries() == 2
    before = PeriodicTasks.last_change()
    with TestCase.captureOnCommitCallbacks(execute=True):
        delete_jobs(acme, ["a"])
    assert entries() == 1 and PeriodicTasks.last_change() > before


def test_what_is_written_around_the_verbs_is_synced_later(acme: Owner) -> None:
    """By the ORM, or in the PeriodicTask itself; what agrees is not written."""
    changed, deleted, fine, off, gone = (every(acme) for _ in range(5))
    ended = every(acme, end_at=now() - timedelta(hours=1))
    assert sorted(sync_periodic_tasks()) == [
        changed.pk,
        deleted.pk,
        fine.pk,
        off.pk,
        gone.pk,
        ended.pk,
    ]
    assert not entry(ended.key).enabled and entry(fine.key).enabled
    other = IntervalSchedule.objects.create(every=1, period="days")
    PeriodicTask.objects.filter(pk=entry(changed.key).pk).update(interval=other, task="x")
    entry(deleted.key).delete()
    PeriodicTask.objects.create(name="fairshift job 999999999", task="x", interval=other)
    PeriodicTask.objects.create(name=f"fairshift job 0{fine.pk}", task="x", interval=other)
    Job.objects.filter(pk=off.pk).update(enabled=False)
    gone_id = gone.pk
    gone.delete()
    before = entry(fine.key).date_changed
    differing = [changed.pk, deleted.pk, off.pk, gone_id, 999_999_999]
    assert sorted(sync_periodic_tasks()) == differing
    assert entry(changed.key).interval.every == entry(deleted.key).interval.every == 7
    assert not entry(off.key).enabled
    assert entry(fine.key).date_changed == before
    assert entries() == 6 and sync_periodic_tasks() == []


def test_the_same_interval_is_made_once(committed: None, broker: redis.Redis, acme: Owner) -> None:
    """Also by two at once: django-celery-beat falls over two that are equal."""
    at_once(*(lambda n=n: upsert(acme, f"k{n}", interval_seconds=4321) for n in range(4)))
    assert IntervalSchedule.objects.filter(every=4321, period="seconds").count() == 1
    assert entries() == 4
    Job.objects.all().delete()
    assert len(sync_periodic_tasks()) == 4 and entries() == 0


def test_writers_of_jobs_wait_for_no_transaction(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """Two that write jobs of the same intervals crosswise end both."""
    gate = threading.Barrier(2)

    def write(*intervals: int) -> None:
        with transaction.atomic():
            for interval in intervals:
                upsert(acme, f"{intervals} {interval}", interval_seconds=interval)
                gate.wait(50)

    assert at_once(lambda: write(4321, 4322), lambda: write(4322, 4321)) == [None, None]
    assert IntervalSchedule.objects.filter(every__in=(4321, 4322)).count() == 2
    delete_jobs(acme, Job.objects.values_list("key", flat=True))
    assert entries() == 0


def test_a_sync_that_fails_fails_no_verb(
    committed: None, broker: redis.Redis, acme: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """The job is committed; the log says so, and the comparison repairs it."""
    with open_transaction("SELECT pg_advisory_xact_lock(1723, 0)"):
        upsert(acme, "a", interval_seconds=4321)
    assert "lock timeout" in caplog.text and entries() == 0
    assert len(sync_periodic_tasks()) == 1
    delete_jobs(acme, ["a"])
    assert entries() == 0
