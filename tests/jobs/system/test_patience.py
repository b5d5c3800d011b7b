"""jobs/system/patience.py: a silent PostgreSQL is given up after a time, a slow one is not."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import OperationalError, connection
from pytest_django import Settings

from jobs import wiring
from jobs.system.patience import Gone, limit_silence, limits_within
from tests.proxy import Faults, Proxy

SECONDS = 0.4


@pytest.fixture
def way(db: None) -> Iterator[Proxy]:
    """A way to PostgreSQL through a proxy."""
    given = connection.settings_dict
    with Proxy(f"unix://{given['HOST']}/.s.PGSQL.{given['PORT'] or 5432}") as proxy:
        yield proxy


@pytest.fixture
def near(way: Proxy) -> Iterator[psycopg.Connection]:
    """A connection over this way that waits for SECONDS at most."""
    given = connection.settings_dict
    facts = {"dbname": given["NAME"], "user": given["USER"], "password": given["PASSWORD"]}
    with psycopg.connect(host="127.0.0.1", port=way.port, **facts) as made:
        limit_silence(made, seconds=SECONDS)
        yield made


def test_a_silent_server_is_given_up(way: Proxy, near: psycopg.Connection) -> None:
    """The proxy keeps the connection open: nothing else would end the wait."""
    way.faults = Faults(hides_loss=True)
    with pytest.raises(Gone, match=r"silent for 0\.4 s"):
        near.execute("SELECT 1")
    assert near.closed


@pytest.mark.parametrize("lease", [7.6, 10, 29.9, 30, 86_400])
def test_limits_end_before_the_lease(lease: float) -> None:
    """The server's own limit first, then the client's, then the lease."""
    statement, silent = limits_within(lease)
    assert 0 < statement < silent < lease


def test_a_worker_s_connection_is_limited(
    committed: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By less than the lease; a living server ends the statement itself."""
    monkeypatch.setattr("jobs.system.patience.LEAST_STATEMENT_SECONDS", 0.0)
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "LEASE_SECONDS": 0.6}
    connection.close()
    asleep = wiring._bounded(lambda: connection.cursor().execute("SELECT pg_sleep(5)"))
    with pytest.raises(OperationalError, match="statement timeout"):
        asleep()
    connection.cursor().execute("SET statement_timeout = 0")
    with pytest.raises(OperationalError, match=r"silent for 0\.5 s"):
        asleep()
    connection.close()
