"""jobs/wiring.py: what a worker is handed, and connections that a task leaves behind."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from celery import shared_task
from django.db import DatabaseError, connection, transaction

from jobs.catalog.registry import job
from jobs.core import sql
from jobs.wiring import SESSION, application, leave_clean


@job(name="tests.wiring.durable")
def durable() -> None: ...


@job(name="tests.wiring.plain", plain=True)
def plain() -> None: ...


@shared_task(name="tests.wiring.celerys")
def celerys() -> None: ...


def test_only_offered_tasks_need_a_row() -> None:
    """Plain ones, other people's tasks and unknown names trust the broker, as in Celery."""
    requires_row = application().requires_row
    assert requires_row("tests.wiring.durable")
    for name in ("tests.wiring.plain", "tests.wiring.celerys", "no.such.task"):
        assert not requires_row(name)


def fail() -> None:
    with pytest.raises(DatabaseError):
        connection.cursor().execute("SELECT 1 / 0")


def leave_atomic_open() -> None:
    transaction.atomic().__enter__()
    fail()


def leave_autocommit_off() -> None:
    transaction.set_autocommit(False)
    fail()


def close_behind_django() -> None:
    with transaction.atomic():
        connection.connection.close()


@pytest.mark.parametrize("spoil", [leave_atomic_open, leave_autocommit_off, close_behind_django])
def test_a_spoilt_connection_is_dropped(committed: None, spoil: Callable[[], None]) -> None:
    """The next statement, Celery's own, finds a good one that commits by itself."""
    connection.ensure_connection()
    with suppress(DatabaseError):
        spoil()
    leave_clean()
    sql.query("SELECT 1")
    assert connection.get_autocommit()
    assert not connection.in_atomic_block


def test_a_worker_waits_neither_for_a_lock_nor_for_a_statement_without_end(committed: None) -> None:
    """A worker's verbs bound both, on the connection that they open."""
    bounds = {**SESSION, "statement_timeout": "20s"}
    assert "lock_timeout" in bounds
    connection.close()
    assert application().record([]) == {}
    for name, value in bounds.items():
        assert sql.query(f"SHOW {name}") == [{name: value}]
    connection.close()
