"""jobs/system/notices/alarms.py: a job that is late, or fails, is told once, and so is its end."""

import json
from datetime import timedelta

import pytest
from django.core import mail

from fleet import Kind
from jobs import upsert_jobs
from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Cursor, EventType, Job, JobAlarm, MailDigest, Owner
from jobs.runs.submission import run_job
from jobs.schedules import slot_of
from tests.jobs.scenes import admitted, living_worker, recorded
from tests.jobs.system.notices.scenes import Notices, endpoint, subscribe

pytestmark = pytest.mark.usefixtures("committed")
LATE = [EventType.JOB_LATE, EventType.JOB_ON_TIME]


def test_a_late_job_and_its_end_are_told_once_each(
    acme: Owner, northwind: Owner, notices: Notices
) -> None:
    """To the endpoints of its owner alone, however often the round looks."""
    endpoint(acme, notices.ears, events=LATE)
    foreign = endpoint(northwind, notices.ears, events=LATE)
    due = now() - timedelta(minutes=3)
    job = Job.objects.create(
        owner=acme, key="once", task="tests.add", payload=b"{}", schedule="once", once_at=due
    )
    sql.query("UPDATE jobs_job SET effective_from = now() - interval '1 day'")
    # The pulse has stood still since before the due time; then it has caught up.
    for reached in (due - timedelta(minutes=5), now() + timedelta(minutes=1)):
        Cursor.objects.update(slot=slot_of(reached))
        for _look in range(2):
            notices.round()
    told = [json.loads(one.body) for one in notices.ears.got]
    assert [one["type"] for one in told] == ["job.late", "job.on_time"]
    assert all(one["data"]["job"] == job.pk and one["data"]["key"] == "once" for one in told)
    assert not foreign.deliveries.exists() and not JobAlarm.objects.exists()


def test_a_failing_job_and_its_recovery_are_told_once_each(acme: Owner, notices: Notices) -> None:
    """However often the round looks."""
    subscribe(acme, events=["job.failing", "job.recovered"])
    call = {"key": "nightly", "task": "tests.add", "arguments": {"x": 1, "y": 1}, "cron": "@daily"}
    upsert_jobs(acme, [call])
    worker = living_worker()
    for kind in (Kind.FAILED, Kind.SUCCEEDED):
        admission = admitted(worker, run_job(Job.objects.get()))
        recorded(admission, Kind.STARTED)
        recorded(admission, kind)
        for _look in range(2):
            notices.round()
    assert [one.subject for one in mail.outbox] == [
        "[Fairshift] job nightly of acme fails",
        "[Fairshift] job nightly of acme no longer fails",
    ]
    assert MailDigest.objects.count() == 2
