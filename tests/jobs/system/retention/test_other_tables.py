"""jobs/system/retention/other_tables.py: rows without a partition have their own days."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

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
from jobs.system.retention import other_tables
from jobs.system.retention.other_tables import remove_keys, remove_others
from jobs.system.retention.rules import rules_now
from tests.jobs.scenes import without_triggers
from tests.jobs.system.retention.old import midnight, old_run

pytestmark = pytest.mark.django_db
NOON = timedelta(hours=12)


def removed() -> dict[str, int]:
    return remove_others(rules_now())


def audited(owner: Owner, days_ago: int) -> AuditEntry:
    """Return an entry of that many days ago: the database writes the time."""
    with without_triggers():
        entry = AuditEntry.write("pause", on=owner, reason=str(days_ago))
        sql.query(
            "UPDATE jobs_auditentry SET at = %s WHERE id = %s",
            [midnight(days_ago) + NOON, entry.pk],
        )
    return entry


def worker(days_ago: int, **facts: Any) -> UUID:
    moment = midnight(days_ago) + NOON
    made = Worker.objects.create(
        id=uuid4(), hostname="w", pid=1, pool="prefork", slots=1, heartbeat_at=moment, **facts
    )
    return made.id


def test_keys_are_forgotten_after_their_days(acme: Owner, settings: Settings) -> None:
    """By default 30; the last batch says whether any is left."""
    for days in (30, 31):
        key = IdempotencyKey.objects.create(owner=acme, key=str(days), fingerprint=b"")
        IdempotencyKey.objects.filter(pk=key.pk).update(created_at=midnight(days) + NOON)
    assert remove_keys(rules_now()) == (1, True)
    assert IdempotencyKey.objects.get().key == "30"
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "KEY_DAYS": 3}
    assert remove_keys(rules_now()) == (1, True)


def test_a_round_removes_a_bounded_number(acme: Owner, monkeypatch: Any) -> None:
    """It says that some are left; then no run is removed, as a key might ask for it."""
    monkeypatch.setattr(other_tables, "BATCH", 2)
    monkeypatch.setattr(other_tables, "BATCHES", 2)
    for number in range(5):
        IdempotencyKey.objects.create(owner=acme, key=str(number), fingerprint=b"")
    IdempotencyKey.objects.update(created_at=midnight(40))
    assert remove_keys(rules_now()) == (4, False)
    assert remove_keys(rules_now()) == (1, True)


def test_the_audit_stays_for_three_years(acme: Owner, settings: Settings) -> None:
    """Or as long as AUDIT_DAYS says, but never less than 90 days."""
    for days in (89, 91, 1_096, 1_097):
        audited(acme, days)
    assert removed()["audit"] == 1
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "AUDIT_DAYS": 90}
    assert removed()["audit"] == 2
    assert AuditEntry.objects.get().reason == "89"


def test_only_retention_removes_old_entries(acme: Owner) -> None:
    """Without its word, an old entry stays; with it, a young one does; none is ever changed."""
    old, young = audited(acme, 91), audited(acme, 89)
    delete = "DELETE FROM jobs_auditentry WHERE id = %s"
    for entry, is_said, act in (
        (old, "off", delete),
        (young, "on", delete),
        (old, "on", "UPDATE jobs_auditentry SET reason = '' WHERE id = %s"),
    ):
        sql.query("SELECT set_config('fairshift.removes_history', %s, true)", [is_said])
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            sql.query(act, [entry.pk])
    assert AuditEntry.objects.count() == 2


def test_missed_due_times_are_forgotten(acme: Owner) -> None:
    """After 90 days."""
    job = Job.objects.create(
        owner=acme, key="a", task="tests.add", schedule="interval", interval_minutes=1
    )
    for days in (90, 91):
        at = midnight(days) + NOON
        made = Missed.objects.create(
            job=job, owner=acme, first_at=at, last_at=at, count=1, reason="outage"
        )
        Missed.objects.filter(pk=made.pk).update(created_at=at)
    assert removed()["missed"] == 1
    assert Missed.objects.get().first_at == midnight(90) + NOON


def test_workers_are_forgotten_when_no_run_needs_them(acme: Owner) -> None:
    """After 180 days without a heartbeat; one that an active run names is to be rescued from."""
    gone, stays, named = worker(181), worker(180), worker(400)
    run = old_run(acme, 2, state="running", has_partition=False)
    sql.query("UPDATE jobs_run SET worker_id = %s WHERE id = %s", [named, run])
    assert removed()["workers"] == 1
    assert set(Worker.objects.values_list("id", flat=True)) == {stays, named}
    assert gone not in {stays, named}


def test_a_submission_goes_after_its_last_run(acme: Owner) -> None:
    """Not before, and not while it is young: its runs may just be stored."""
    made = {}
    for name, days in (("empty", 100), ("full", 100), ("young", 3)):
        one = Submission.objects.create(
            owner=acme, label=name, task="tests.add", queue="jobs", run_count=1
        )
        Submission.objects.filter(pk=one.pk).update(created_at=midnight(days))
        made[name] = one.pk
    old_run(acme, 100, submission=made["full"], has_partition=False)
    assert removed()["submissions"] == 1
    assert set(Submission.objects.values_list("label", flat=True)) == {"full", "young"}


def test_unconfirmed_imports_are_removed(acme: Owner) -> None:
    """A file that no user can confirm any more takes space."""
    for name, days in (("ada", 3), ("eve", 0)):
        user = User.objects.create(username=name)
        made = JobImport.objects.create(owner=acme, user=user, name=name, content=b"x")
        JobImport.objects.filter(pk=made.pk).update(created_at=midnight(days))
    assert removed()["imports"] == 1
    assert JobImport.objects.get().name == "eve"
