"""jobs/system/retention/other_tables.py: rows without a partition have their own days."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from pytest_django import Settings

from jobs.core import sql
from jobs.models import (
    AuditEntry,
    IdempotencyKey,
    Job,
    JobImport,
    Missed,
    Owner,
    Submission,
    Worker,
)
from jobs.system.retention.other_tables import remove_keys, remove_others
from jobs.system.retention.rules import rules_now
from tests.jobs.scenes import without_triggers
from tests.jobs.system.retention.old import NOON, midnight, old_run

pytestmark = pytest.mark.django_db


def removed() -> dict[str, int]:
    return {"keys": remove_keys(rules_now())[0], **remove_others(rules_now())}


def key(owner: Owner, at: datetime) -> IdempotencyKey:
    return IdempotencyKey.objects.create(owner=owner, key=str(at), fingerprint=b"")


def entry(owner: Owner, _at: datetime) -> AuditEntry:
    return AuditEntry.write("pause", on=owner)


def missed(owner: Owner, at: datetime) -> Missed:
    every = {"schedule": "interval", "interval_minutes": 1}
    job = Job.objects.create(owner=owner, key=str(at), task="tests.add", **every)
    return Missed.objects.create(
        job=job, owner=owner, first_at=at, last_at=at, count=1, reason="outage"
    )


def worker(_owner: Owner, at: datetime) -> Worker:
    return Worker.objects.create(
        id=uuid4(), hostname="w", pid=1, pool="prefork", slots=1, heartbeat_at=at
    )


def unconfirmed(owner: Owner, at: datetime) -> JobImport:
    user = User.objects.create(username=str(at))
    return JobImport.objects.create(owner=owner, user=user, name="jobs.csv", content=b"x")


def made(make: Callable[[Owner, datetime], Any], owner: Owner, days_ago: int) -> Any:
    """Make a row of noon that many days ago, past the triggers that write the time."""
    at = midnight(days_ago) + NOON
    row = make(owner, at)
    column = {entry: "at", worker: "heartbeat_at"}.get(make, "created_at")
    with without_triggers():
        type(row).objects.filter(pk=row.pk).update(**{column: at})
    return row


@pytest.mark.parametrize(
    ("table", "make", "given", "days"),
    [
        ("keys", key, {}, 30),
        ("keys", key, {"KEY_DAYS": 3}, 3),
        ("audit", entry, {}, 1_096),
        ("audit", entry, {"AUDIT_DAYS": 90}, 90),
        ("missed", missed, {}, 90),
        ("workers", worker, {}, 180),
        ("imports", unconfirmed, {}, 2),
    ],
)
def test_rows_leave_after_their_days(
    acme: Owner, settings: Settings, *, table: str, make: Any, given: dict[str, int], days: int
) -> None:
    """Those of the settings, or the defaults; a day is counted to its midnight in UTC."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, **given}
    made(make, acme, days + 1)
    last = made(make, acme, days)
    assert removed()[table] == 1
    assert type(last).objects.get() == last


def test_only_retention_removes_old_entries(acme: Owner) -> None:
    """Without its word, an old entry stays; with it, a young one does; none is ever changed."""
    old, young = made(entry, acme, 91), made(entry, acme, 89)
    delete = "DELETE FROM jobs_auditentry WHERE id = %s"
    for row, is_said, act in (
        (old, "off", delete),
        (young, "on", delete),
        (old, "on", "UPDATE jobs_auditentry SET reason = '' WHERE id = %s"),
    ):
        sql.query("SELECT set_config('fairshift.removes_history', %s, true)", [is_said])
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            sql.query(act, [row.pk])
    assert AuditEntry.objects.count() == 2


def test_a_worker_that_an_active_run_names_stays(acme: Owner) -> None:
    """However long it has been silent: its run is to be rescued."""
    named = made(worker, acme, 400)
    run = old_run(acme, 2, state="running", has_partition=False)
    sql.query("UPDATE jobs_run SET worker_id = %s WHERE id = %s", [named.pk, run])
    assert removed()["workers"] == 0


def test_a_submission_goes_after_its_last_run(acme: Owner) -> None:
    """Not before, and not while it is young: its runs may just be stored."""
    found = {}
    for name, days in (("empty", 100), ("full", 100), ("young", 3)):
        one = Submission.objects.create(
            owner=acme, label=name, task="tests.add", queue="jobs", run_count=1
        )
        Submission.objects.filter(pk=one.pk).update(created_at=midnight(days))
        found[name] = one.pk
    old_run(acme, 100, submission=found["full"], has_partition=False)
    assert removed()["submissions"] == 1
    assert set(Submission.objects.values_list("label", flat=True)) == {"full", "young"}
