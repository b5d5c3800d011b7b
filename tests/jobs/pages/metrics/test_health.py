"""jobs/pages/metrics/health.py: what a web process says of itself to a supervisor."""

import pytest
from django.db import connections

from jobs.core import sql
from jobs.pages.metrics import health
from tests.jobs.pages.metrics.scraping import NOWHERE, ask, redis_at
from tests.jobs.scenes import open_transaction

pytestmark = pytest.mark.usefixtures("committed", "broker")


@pytest.fixture(autouse=True)
def _unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget that the migrations were found applied."""
    monkeypatch.setattr(health, "_migrated", health.threading.Event())
    # The first look imports all migrations.
    monkeypatch.setattr(health, "SECONDS", 10.0)


def test_live_asks_no_server(django_assert_num_queries: object) -> None:
    """It answers while nothing else does."""
    with django_assert_num_queries(0):  # type: ignore[operator]
        answer = ask("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"is_live": True})
    assert answer.headers["Cache-Control"] == "no-store"


def test_without_redis_it_is_ready() -> None:
    """Submits are stored without it; the answer says that it is away."""
    with redis_at(NOWHERE):
        answer = ask("/health/ready")
    assert answer.status_code == 200
    assert answer.json() == {"is_ready": True, "reasons": [], "redis": "does not answer"}


def test_without_postgresql_it_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with the reason, and no name of a server."""
    monkeypatch.setitem(connections.settings["default"], "HOST", "/nowhere")
    answer = ask("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == [health.AWAY]
    assert "nowhere" not in answer.text


def test_a_silent_postgresql_is_away_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is given up; the next one does not begin another before it has ended."""
    health._migrated.set()
    monkeypatch.setattr(health, "SECONDS", 0.2)
    with open_transaction("LOCK TABLE django_migrations"):
        health._migrated.clear()
        assert ask("/health/ready").json()["reasons"] == [health.AWAY]
        assert ask("/health/ready").json()["reasons"] == [health.AWAY]
        [row] = sql.query(
            "SELECT count(*) AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        )
    assert row["waiting"] == 1
    monkeypatch.setattr(health, "SECONDS", 10.0)
    assert ask("/health/ready").status_code == 200


def test_an_unmigrated_database_is_not_ready() -> None:
    """503, until `migrate` has been run."""
    last = sql.query(
        "DELETE FROM django_migrations WHERE id = "
        "(SELECT max(id) FROM django_migrations WHERE app = 'jobs') RETURNING app, name, applied"
    )
    try:
        answer = ask("/health/ready")
    finally:
        sql.query(
            "INSERT INTO django_migrations (app, name, applied) "
            "VALUES (%(app)s, %(name)s, %(applied)s)",
            last[0],
        )
    assert answer.status_code == 503
    assert answer.json()["reasons"] == [health.UNMIGRATED]
    assert ask("/health/ready").status_code == 200
