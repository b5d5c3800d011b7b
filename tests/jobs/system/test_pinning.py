"""jobs/system/pinning.py: old transactions and slots are found, with whose they are."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from jobs.core import sql
from jobs.management.doctor import postgres, running
from jobs.system import pinning
from tests.jobs.scenes import open_transaction
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("committed", "broker")

TAKES_AN_ID = "SELECT set_config('application_name', 'report', false), pg_current_xact_id()"


@pytest.fixture
def reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report what would be reported when it is older."""
    monkeypatch.setattr(pinning, "OLD", timedelta(0))
    monkeypatch.setattr(pinning, "TRANSACTIONS", 1)
    monkeypatch.setattr(pinning, "WAL_BYTES", 1)


@pytest.fixture
def unprivileged() -> Iterator[str]:
    """Be a user that sees nothing of others; yield the name of the user before."""
    [row] = sql.query("SELECT current_user AS name")
    sql.query("CREATE ROLE pinning_stranger")
    sql.query("SET ROLE pinning_stranger")
    yield row["name"]
    sql.query("RESET ROLE")
    sql.query("DROP ROLE pinning_stranger")


def said(number: str) -> str:
    """Return what doctor says with this id; empty if it says nothing."""
    found = [one.msg for one in running.verdict() if one.id == f"fairshift.{number}"]
    return found[0] if found else ""


@pytest.mark.usefixtures("reported_at_once")
def test_an_old_transaction_is_named_with_its_process() -> None:
    """By process, application and user, so that an operator can end it."""
    [user] = sql.query("SELECT current_user AS name")
    with open_transaction(TAKES_AN_ID):
        [row] = sql.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'report'")
        words = f"process {row['pid']} (application report, user {user['name']})"
        # An ANALYZE of the server itself may be older for a moment.
        wait_for(lambda: words in said("D106"), what="the transaction is named")


@pytest.mark.usefixtures("reported_at_once")
def test_the_age_that_a_user_may_not_see_is_in_transactions(unprivileged: str) -> None:
    """The begin is hidden, its process and user are not; doctor says what is missing."""
    with open_transaction(TAKES_AN_ID):
        # Each takes an id, so that the transaction gets older.
        wait_for(
            lambda: (
                sql.query("SELECT pg_current_xact_id()")
                and pinning.pins()["transaction"].name == "report"
            ),
            what="the transaction is found",
        )
        pin = pinning.pins()["transaction"]
        assert pin.seconds is None and pin.transactions >= 1 and pin.username == unprivileged
        [note] = postgres.ages_of_transactions()
        assert note.id == "fairshift.D109" and unprivileged in note.msg
        assert "pg_read_all_stats" in str(note.hint)


@pytest.mark.usefixtures("reported_at_once")
def test_a_slot_that_is_behind_is_named() -> None:
    """Nothing reads it: PostgreSQL keeps all WAL since."""
    sql.query("SELECT pg_create_physical_replication_slot('left_behind', true)")
    try:
        sql.query("SELECT pg_logical_emit_message(false, 'test', repeat('x', 1000))")
        assert "slot 'left_behind' is behind" in said("D108")
    finally:
        sql.query("SELECT pg_drop_replication_slot('left_behind')")
    assert said("D108") == ""
