"""jobs/checks/pooling.py: what a pooler does with sessions, with Debian's PgBouncer."""

from functools import partial

import psycopg
import pytest

from jobs.checks.pooling import pooling_mode
from tests.flows.processes import database_url
from tests.pgbouncer import pgbouncer


@pytest.mark.django_db
def test_a_server_without_a_pooler_keeps_sessions() -> None:
    """One connection is enough to know."""
    assert pooling_mode(partial(psycopg.connect, database_url(), autocommit=True)) == ""


@pytest.mark.proof
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("mode", "found", "size"),
    [
        # With one connection, the second client would wait for the first one's end.
        ("session", "", 10),
        ("transaction", "transaction", 1),
        pytest.param("transaction", "transaction", 10, marks=pytest.mark.smoke),
        ("statement", "statement", 1),
        ("statement", "statement", 10),
    ],
)
def test_each_mode_of_pgbouncer_is_known(mode: str, found: str, size: int) -> None:
    """Also with a single connection to the server; a session of its own cannot be had then."""
    with pgbouncer(database_url(), mode=mode, size=size) as url:
        for _ in range(3):
            assert pooling_mode(partial(psycopg.connect, url, autocommit=True)) == found
