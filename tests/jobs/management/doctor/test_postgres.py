"""jobs/management/doctor/postgres.py: what is wrong with PostgreSQL and its rows."""

from datetime import timedelta

import pytest

from jobs.core import sql
from jobs.core.sql import now
from jobs.management.doctor import postgres
from jobs.system.partitions import make_partitions

pytestmark = pytest.mark.django_db


def test_a_sound_server_passes() -> None:
    """The embedded one, with the migrations of this code."""
    for look in postgres.ROWS:
        assert list(look()) == [], look.__name__


def test_a_read_only_user_is_an_error() -> None:
    """Nothing could be stored; the setting is named."""
    sql.query("SET LOCAL default_transaction_read_only = on")
    [found] = postgres.writable()
    assert found.id == "fairshift.D102" and "read-only for this user" in found.msg
    assert "default_transaction_read_only" in str(found.hint)


@pytest.mark.parametrize("table", ["jobs_run", "jobs_attempt", "jobs_log"])
def test_a_gap_in_the_partitions_is_an_error(table: str) -> None:
    """Of runs or of attempts, between today and the last day that has one."""
    make_partitions(days_ahead=3)
    name = f"{table}_{now() + timedelta(days=2):%Y%m%d}"
    sql.query(f"DROP TABLE {name}")
    [found] = postgres.partitions()
    assert found.id == "fairshift.D104"
    assert found.msg.startswith(f"1 partition missing, the first is {name}: ")
    make_partitions(days_ahead=3)
    assert list(postgres.partitions()) == []


def test_a_migration_of_a_newer_version_is_a_warning() -> None:
    """Old code on a database that new code has migrated."""
    sql.query(
        "INSERT INTO django_migrations (app, name, applied) VALUES"
        " ('jobs', '9999_later', now()), ('shop', '9999_theirs', now())"
    )
    [found] = postgres.migrations()
    assert found.id == "fairshift.D105" and "such as 9999_later" in found.msg


@pytest.mark.parametrize(
    ("shift", "words"), [(5, "5.0 s ahead of PostgreSQL's"), (-3600, "3,600.0 s behind")]
)
def test_a_wrong_clock_of_this_machine_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, shift: float, words: str
) -> None:
    """By the clock that this process reads."""
    right = postgres.time.time
    monkeypatch.setattr(postgres.time, "time", lambda: right() + shift)
    [found] = postgres.clock()
    assert found.id == "fairshift.D103" and words in found.msg
