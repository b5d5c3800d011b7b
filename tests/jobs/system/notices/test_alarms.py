"""jobs/system/notices/alarms.py: a job that is late, or fails, is told once, and so is its end."""

import json
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Cursor, EventType, Job, JobAlarm, Owner
from jobs.schedules import slot_of
from tests.jobs.system.notices.scenes import allow, carry_out, collect, endpoint
from tests.receivers import Receiver

pytestmark = pytest.mark.usefixtures("committed")
Messages = list[dict[str, Any]]
LATE = [EventType.JOB_LATE, EventType.JOB_ON_TIME]


def test_a_late_job_and_its_end_are_told_once_each(
    acme: Owner, northwind: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """To the endpoints of its owner alone, however often the round looks."""
    allow(settings, ears)
    endpoint(acme, ears, events=LATE)
    foreign = endpoint(northwind, ears, events=LATE)
    due = now() - timedelta(minutes=3)
    job = Job.objects.create(
        owner=acme, key="once", task="tests.add", payload=b"{}", schedule="once", once_at=due
    )
    sql.query("UPDATE jobs_job SET effective_from = now() - interval '1 day'")
    # The pulse has stood still since before the due time; then it has caught up.
    for reached in (due - timedelta(minutes=5), now() + timedelta(minutes=1)):
        Cursor.objects.update(slot=slot_of(reached))
        for _look in range(2):
            collect()
            carry_out(messages)
    told = [json.loads(one.body) for one in ears.got]
    assert [one["type"] for one in told] == ["job.late", "job.on_time"]
    assert all(one["data"]["job"] == job.pk and one["data"]["key"] == "once" for one in told)
    assert not foreign.deliveries.exists() and not JobAlarm.objects.exists()
