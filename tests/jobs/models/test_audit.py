"""jobs/models/audit.py: what operators did is only ever added to."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from jobs.core import sql
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


def refused(statement: str, problem: str) -> None:
    """Have PostgreSQL refuse a statement."""
    with pytest.raises(DatabaseError, match=problem), transaction.atomic():
        sql.query(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs_auditentry SET reason = 'nothing happened'",
        "DELETE FROM jobs_auditentry",
        "UPDATE jobs_auditentry SET id = id",
        "TRUNCATE jobs_auditentry",
        "TRUNCATE jobs_owner, jobs_auditentry RESTART IDENTITY CASCADE",
    ],
)
def test_nobody_changes_or_removes_an_entry(entry: AuditEntry, statement: str) -> None:
    """Not even with a database shell."""
    refused(statement, "audit entries are append-only")
    entry.refresh_from_db()
    assert entry.reason == "freeze"


def test_an_empty_table_may_be_truncated(db: None) -> None:
    """Django's TransactionTestCase truncates every table of a user's test database."""
    sql.query("TRUNCATE jobs_auditentry")


def test_the_database_says_when_and_as_which_role(acme: Owner) -> None:
    """An INSERT that claims another time or role is recorded with the real ones."""
    [before] = sql.query("SELECT statement_timestamp() AS at, session_user AS role")
    sql.query(
        "INSERT INTO jobs_auditentry (at, database_role, actor_name, action, object_type,"
        " object_id, reason, details)"
        " VALUES ('2001-01-01', 'someone', 'ada', 'pause', 'owner', '1', '', '{}')"
    )
    entry = AuditEntry.objects.get(actor_name="ada")
    assert (entry.at >= before["at"], entry.database_role) == (True, before["role"])
    assert AuditEntry.write("pause", on=acme).at >= entry.at


def test_a_role_that_owns_nothing_works_and_cannot_touch_the_audit(
    entry: AuditEntry, acme: Owner
) -> None:
    """The grants that SECURITY.md names: enough to submit, too little to change an entry."""
    page = (settings.BASE_DIR / "SECURITY.md").read_text()
    grants = page.partition("```sql\n")[2].partition("```")[0]
    assert "GRANT" in grants
    sql.query("CREATE ROLE fairshift_app")
    sql.query(grants)
    sql.query("SET LOCAL ROLE fairshift_app")
    [run] = submitted(acme)
    AuditEntry.write("cancel", on=run)
    for statement in (
        "UPDATE jobs_auditentry SET reason = ''",
        "DELETE FROM jobs_auditentry",
        "TRUNCATE jobs_auditentry",
        "ALTER TABLE jobs_auditentry DISABLE TRIGGER USER",
        "DROP TABLE jobs_auditentry",
    ):
        refused(statement, r"permission denied|must be owner")
