"""jobs/core/barrier.py: while it is raised, rows of other owners do not exist, in raw SQL too."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.postgresql.base import ServerBindingCursor

from jobs.calendars import attach
from jobs.core import barrier, sql
from jobs.models import Calendar, Owner, Run
from jobs.runs.preparation import make_targets
from tests.jobs.api.matrix.rows import give_waves
from tests.jobs.scenes import submitted

HIDDEN = {
    *("jobs_run", "jobs_rollout", "jobs_submission", "jobs_target"),
    *("jobs_owner", "jobs_calendar", "jobs_attachment"),
}


@pytest.fixture(autouse=True)
def _rows(acme: Owner, stranger: Owner) -> None:
    """Both owners have a row of each kind."""
    for owner in (acme, stranger):
        [run] = submitted(owner)
        give_waves(run.submission)
        make_targets(owner, ["sw-1"])
        attach(Calendar.objects.create(owner=owner, name="nights"), owner)


@pytest.fixture
def raised(acme: Owner, _rows: None) -> Iterator[None]:
    """The barrier of a request of acme."""
    barrier.raise_for([acme.pk])
    yield
    barrier.lower()


def count(table: str) -> int:
    return sql.query(f"SELECT count(*) AS rows FROM {table}")[0]["rows"]


def test_other_owners_rows_do_not_exist(raised: None, acme: Owner) -> None:
    """Whatever the statement asks for, and also without an owner at all."""
    assert {table: count(table) for table in HIDDEN} == dict.fromkeys(HIDDEN, 1)
    assert sql.query("SELECT DISTINCT owner_id FROM jobs_run") == [{"owner_id": acme.pk}]
    barrier.lower()
    assert {table: count(table) for table in HIDDEN} == dict.fromkeys(HIDDEN, 2)
    barrier.raise_for([])
    assert {table: count(table) for table in HIDDEN} == dict.fromkeys(HIDDEN, 0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs_run SET state = 'failed'",
        "DELETE FROM jobs_submission",
        "INSERT INTO jobs_target (owner_id, name) VALUES (1, 'x')",
        "SELECT * FROM auth_user",
        "SELECT * FROM jobs_worker",
        "SELECT * FROM jobs_run_default",
        "SELECT * FROM django_session",
    ],
)
def test_the_role_reads_tables_of_owners_and_nothing_else(raised: None, statement: str) -> None:
    """No row is written behind the barrier, and no partition, account or worker is read."""
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        sql.query(statement)


def test_a_verb_acts_with_the_barrier_lifted(raised: None, acme: Owner) -> None:
    """What follows the verb is behind it again, whatever became of the verb."""
    with barrier.lifted():
        submitted(acme)
        assert Run.objects.count() == 3
        with barrier.lifted():
            assert Run.objects.count() == 3
        assert Run.objects.count() == 3
    assert Run.objects.count() == 2
    with pytest.raises(ZeroDivisionError), barrier.lifted():
        1 / 0  # noqa: B018
    assert Run.objects.count() == 2


def test_a_session_never_has_the_role(committed: None, acme: Owner) -> None:
    """A pooler, or Django's pool, may give the connection to another caller at any time."""
    barrier.raise_for([acme.pk])
    assert count("jobs_owner") == 1
    raw: Any = connection.connection
    as_whom = "SELECT current_user = session_user, current_setting('fairshift.owner_ids', true)"
    assert raw.execute(as_whom).fetchone() == (True, "")
    with transaction.atomic():
        assert count("jobs_owner") == 1
        assert raw.execute(as_whom).fetchone() == (True, "")
    with pytest.raises(DatabaseError):
        sql.query("SELECT 1 / 0")
    assert raw.execute(as_whom).fetchone() == (True, "")
    barrier.lower()


def test_a_savepoint_keeps_no_role(raised: None, acme: Owner) -> None:
    """What is rolled back to it runs with the rights that its caller has then."""
    with suppress(ZeroDivisionError), transaction.atomic():
        assert count("jobs_owner") == 1
        raise ZeroDivisionError
    with barrier.lifted():
        assert count("jobs_owner") == 2
        with suppress(ZeroDivisionError), transaction.atomic():
            submitted(acme)
            raise ZeroDivisionError
    assert count("jobs_run") == 1


def test_it_holds_for_parameters_that_the_server_binds(
    raised: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `server_side_binding` in a project's settings."""
    monkeypatch.setattr(connection.connection, "cursor_factory", ServerBindingCursor)
    assert Run.objects.filter(state="queued").count() == 1
    with barrier.lifted():
        assert Run.objects.filter(state="queued").count() == 2


def test_the_end_of_a_request_lowers_it_also_in_a_broken_transaction(
    committed: None, acme: Owner
) -> None:
    """Connections are used again: the next request must not act as the last one's owner."""
    barrier.raise_for([acme.pk])
    with pytest.raises(DatabaseError), transaction.atomic():
        sql.query("SELECT 1 / 0")
    barrier.lower()
    assert sql.query("SELECT current_user = session_user AS same")[0]["same"]
    assert count("jobs_owner") == 2
    barrier.lower()


def test_a_wrapper_around_a_request_ends_with_it(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django removes the last wrapper then, which must not be the barrier's."""
    monkeypatch.setattr(connections["default"], "execute_wrappers", [])  # as of a new connection
    seen: list[str] = []

    def note(execute: Any, statement: str, *given: Any) -> Any:
        seen.append(statement)
        return execute(statement, *given)

    with connection.execute_wrapper(note):
        barrier.raise_for([acme.pk])
    seen.clear()
    with barrier.lifted():
        assert count("jobs_owner") == 2
    assert count("jobs_owner") == 1, "the barrier is up again"
    barrier.lower()
    assert not seen


def test_every_table_with_an_owner_has_the_policy() -> None:
    """A new one must choose: readable behind the barrier with a policy, or not readable."""
    open_tables = sql.query(
        "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace "
        "AND relkind IN ('r', 'p') AND NOT relrowsecurity "
        "AND has_table_privilege('fairshift_tenant', oid, 'SELECT')"
    )
    assert open_tables == []
