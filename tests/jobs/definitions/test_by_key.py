"""jobs/definitions/by_key.py: one job in one statement, with the effect of a bulk's statements."""

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

import tests.tasks  # noqa: F401  registers the tasks of scenes
from jobs import delete_jobs, upsert_jobs
from jobs.definitions.upsert import Upserted
from jobs.models import Attachment, Backfill, Calendar, Job, Missed, Owner, Submission
from jobs.schedules import place
from tests.jobs.scenes import behind

MOMENT = "2030-01-01T00:00:00Z"


def nightly(**changes: Any) -> dict[str, Any]:
    return {"key": "nightly", "task": "tests.add", "arguments": {"x": 1, "y": 2}, **changes}


def upsert(owner: Owner | str, **changes: Any) -> Upserted:
    return upsert_jobs(owner, [nightly(**changes)])


def place_of(job: Job) -> tuple[int | None, int | None]:
    return job.phase, job.shard


def test_its_records_are_deleted_with_a_job(
    committed: None, acme: Owner, northwind: Owner, statements: list[str]
) -> None:
    """In the same statement; the records of another owner's job of this key stay."""
    for owner in (acme, northwind):
        upsert(owner)
        job = Job.objects.get(owner=owner)
        asked = Submission.objects.create(owner=owner, task=job.task, queue="jobs", run_count=1)
        times = {"start_at": MOMENT, "end_at": MOMENT, "count": 1}
        Backfill.objects.create(job=job, submission=asked, **times)
        Missed.objects.create(
            job=job, owner=owner, first_at=MOMENT, last_at=MOMENT, count=1, reason="outage"
        )
        Attachment.objects.create(
            calendar=Calendar.objects.create(owner=owner, name="nights"), job=job
        )
    del statements[:]
    with CaptureQueriesContext(connection) as others:
        assert delete_jobs(acme, ["nightly"]) == 1
    assert (statements, len(others)) == (["definitions/delete_one"], 0)
    assert Job.objects.get().owner == northwind
    for model in (Missed, Backfill, Attachment):
        assert [row.job.owner for row in model.objects.all()] == [northwind]


def test_the_place_is_the_next_of_the_interval(committed: None, acme: Owner) -> None:
    """PostgreSQL places one job as Python places a bulk; a later bulk takes the next places."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('jobs_phase_7')")
        [number] = cursor.fetchone()
    upsert(acme, interval_minutes=7)
    upsert_jobs(acme, [nightly(key=key, interval_minutes=7) for key in "ab"])
    found = {place_of(job) for job in Job.objects.all()}
    assert found == {place(number + n, interval_minutes=7) for n in (1, 2, 3)}
    assert place_of(Job.objects.get(key="nightly")) == place(number + 1, interval_minutes=7)


def test_a_job_keeps_the_place_that_it_got_meanwhile(committed: None, acme: Owner) -> None:
    """The statement waits for a writer that changes the interval, and then finds the same one."""
    upsert(acme, interval_minutes=60)
    with behind(lambda: upsert(acme, interval_minutes=7, priority=3)) as (begin, outcomes):
        upsert(acme, interval_minutes=7)
        placed = place_of(Job.objects.get())
        begin()
    assert outcomes == [Upserted(updated=1)]
    job = Job.objects.get()
    assert (job.priority, place_of(job)) == (3, placed)


def test_a_job_that_another_transaction_makes_meanwhile_is_changed(
    committed: None, acme: Owner
) -> None:
    """The statement waits for it and makes none; the statements of a bulk change it."""
    with behind(lambda: upsert(acme, priority=3)) as (begin, outcomes):
        upsert(acme)
        begin()
    assert outcomes == [Upserted(updated=1)]
    assert Job.objects.get().priority == 3


def test_a_callers_transaction_continues_after_an_error(committed: None, acme: Owner) -> None:
    """The statement has a savepoint of its own there."""
    upsert(acme)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_job ADD CONSTRAINT scene CHECK (name <> 'refused')")
    try:
        with transaction.atomic():
            with pytest.raises(Exception, match="scene"):
                upsert(acme, name="refused")
            assert upsert(acme, name="taken") == Upserted(updated=1)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE jobs_job DROP CONSTRAINT scene")
    assert Job.objects.get().name == "taken"
