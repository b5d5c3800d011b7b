"""jobs/models/audit.py: what operators did is only ever added to."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction

from jobs.models import AuditEntry, Owner
from tests.jobs.scenes import submitted


@pytest.fixture
def entry(acme: Owner) -> AuditEntry:
    ada = User.objects.create(username="ada")
    return AuditEntry.write("pause", on=acme, actor=ada, reason="freeze", until=None)


def test_an_entry_tells_who_did_what_to_whose_object(entry: AuditEntry, acme: Owner) -> None:
    """An owner is its own owner; a run belongs to one."""
    assert (entry.actor_name, entry.action, entry.object_type) == ("ada", "pause", "owner")
    assert (entry.object_id, entry.owner, entry.details) == (str(acme.pk), acme, {"until": None})
    assert str(entry) == f"ada: pause owner {acme.pk}"
    [run] = submitted(acme)
    assert AuditEntry.write("cancel", on=run).owner == acme
    # Of no person, and of an action that names its object, too.
    assert str(AuditEntry.write("request owner", on=acme)) == f"request owner {acme.pk}"


def test_it_outlives_the_account(entry: AuditEntry) -> None:
    """The name is kept beside the key."""
    User.objects.all().delete()
    entry.refresh_from_db()
    assert entry.actor_name == "ada"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs_auditentry SET reason = 'nothing happened'",
        "DELETE FROM jobs_auditentry",
        "UPDATE jobs_auditentry SET id = id",
    ],
)
def test_nobody_changes_or_removes_an_entry(entry: AuditEntry, statement: str) -> None:
    """Not even with a database shell."""
    with (
        pytest.raises(DatabaseError, match="audit entries are append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    entry.refresh_from_db()
    assert entry.reason == "freeze"


def test_nor_does_the_model(entry: AuditEntry) -> None:
    """Saving it again is a change."""
    for act in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            act()
