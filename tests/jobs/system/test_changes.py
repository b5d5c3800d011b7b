"""jobs/system/changes.py: it is another text after a change, and the same without one."""

from collections.abc import Callable

import pytest
from django.apps import apps
from django.db import transaction

from fleet import Kind
from jobs.core import sql
from jobs.models import Job, Owner, Run, Submission, Worker
from jobs.system.changes import BEATING, UNREAD, changes
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

pytestmark = pytest.mark.usefixtures("committed", "broker")


def seen() -> str | None:
    """Return the changes, once this session has reported what it counted."""
    sql.query("SELECT pg_stat_force_next_flush()")
    return changes()


CHANGES: dict[str, Callable[[], object]] = {
    "an owner is made": lambda: Owner.objects.create(slug="northwind"),
    "an owner is changed": lambda: Owner.objects.update(weight=7),
    "an owner is deleted": lambda: Owner.objects.filter(slug="stranger").delete(),
    "a job is made": lambda: Job.objects.create(owner=_acme(), key="sum", task="tests.add"),
    "a run is submitted": lambda: submitted("acme"),
    "a row of a partition is changed": lambda: Run.objects.update(state="cancelled"),
    "an attempt ends": lambda: recorded(
        admitted(living_worker(), Run.objects.get()), Kind.SUCCEEDED
    ),
    "a submission is deleted": lambda: Submission.objects.create(
        owner=_acme(), run_count=0
    ).delete(),
    "a worker boots": lambda: living_worker("w2@here"),
}


def _acme() -> Owner:
    return Owner.objects.get(slug="acme")


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_of_a_row_is_seen(acme: Owner, stranger: Owner, change: str) -> None:
    """A row is inserted, updated or deleted; of a table, or of a partition."""
    submitted(acme)
    before = seen()
    assert before is not None and seen() == before
    CHANGES[change]()
    assert seen() != before


def test_each_of_our_tables_counts() -> None:
    """By the beginning of its name; a table that does not is one of the few that are named."""
    tables = {model._meta.db_table for model in apps.get_app_config("jobs").get_models()}
    assert all(table.startswith("jobs_") for table in tables)
    assert {*UNREAD, *BEATING} < tables


def test_a_heartbeat_is_no_change() -> None:
    """An idle installation would change with each poll."""
    living_worker()
    before = seen()
    Worker.objects.update(slots=3)
    assert seen() == before


def test_nothing_is_said_inside_a_transaction() -> None:
    """PostgreSQL counts at its end: a change in it would not be seen."""
    with transaction.atomic():
        assert changes() is None


def test_nothing_is_said_if_postgresql_counts_nothing() -> None:
    """Its setting `track_counts` is off: no change would ever be seen."""
    sql.query("SET track_counts = off")
    try:
        assert changes() is None
    finally:
        sql.query("RESET track_counts")
    assert changes() is not None
