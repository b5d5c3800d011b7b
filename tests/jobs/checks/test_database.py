"""jobs/checks/database.py: a PostgreSQL that may forget is refused, a missing one is named."""

import pytest
from django.db import connection
from django.db.utils import ConnectionHandler

from jobs.checks import database


@pytest.mark.django_db
def test_embedded_postgresql_passes() -> None:
    """The server that starts by itself keeps what it commits, and tests are migrated."""
    assert database.check_database(databases=["default"]) == []
    assert database.check_deployed_database() == []


@pytest.mark.django_db
def test_switched_off_durability_is_an_error() -> None:
    """A session that does not wait for the disk could see a token issued twice."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    (message,) = database.check_database(databases=["default"])
    assert message.id == "fairshift.E104"
    assert "synchronous_commit" in message.msg


@pytest.mark.django_db
def test_old_postgresql_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older than the oldest supported version."""
    monkeypatch.setattr(database, "OLDEST_VERSION", 99)
    (message,) = database.check_database(databases=["default"])
    assert message.id == "fairshift.E103"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": "x",
                "HOST": "127.0.0.1",
                "PORT": "1",
            },
            "fairshift.E102",
        ),
        ({"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}, "fairshift.E101"),
    ],
)
def test_no_postgresql_is_an_error_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, url: dict[str, str], expected: str
) -> None:
    """A server that does not answer, and one of another kind, get a sentence and a fix."""
    monkeypatch.setattr(database, "connections", ConnectionHandler({"default": url}))
    (message,) = database.check_deployed_database()
    assert message.id == expected
    assert message.hint
