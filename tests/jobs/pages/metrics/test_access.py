"""jobs/pages/metrics/access.py: metrics are for tokens of the installation and listed addresses."""

from typing import Any

import pytest
from django.db import connection
from psycopg import OperationalError

from jobs.models import Owner
from jobs.pages.metrics import access
from tests.jobs.pages.metrics.scraping import ask, parsed, secret_of, value

pytestmark = pytest.mark.usefixtures("db", "broker")


@pytest.fixture
def listed(settings: Any) -> None:
    """Addresses of two networks may scrape."""
    networks = ("10.1.0.0/16", "fd00::/8")
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "METRICS_ADDRESSES": networks}


def test_a_token_of_the_installation_may_scrape() -> None:
    """With the scope `read`, as Prometheus sends it; the answer is not stored anywhere."""
    answer = ask(secret=secret_of())
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert value(parsed(answer.text), "up", part="postgresql") == 1


@pytest.mark.parametrize("secret", ["", "fs_wrong", "x", "fs_é", "fs_" + "a" * 5_000])
def test_without_a_good_token_nothing_is_shown(secret: str) -> None:
    """401 with no content, which names the scheme."""
    answer = ask(secret=secret)
    assert (answer.status_code, answer.content) == (401, b"")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_of_one_owner_may_not_scrape(acme: Owner) -> None:
    """Metrics are of all owners: 403 with no content, and so for a token that may not read."""
    for secret in (secret_of(owner=acme), secret_of("submit", "admin")):
        answer = ask(secret=secret)
        assert (answer.status_code, answer.content) == (403, b"")


@pytest.mark.usefixtures("listed")
def test_a_listed_address_needs_no_token() -> None:
    """Also one that is written as IPv6.

    What a proxy says of its client does not count: any client can write it.
    """
    for address in ("10.1.2.3", "fd00::7", "::ffff:10.1.2.3"):
        assert ask(REMOTE_ADDR=address).status_code == 200, address
    forwarded = {"HTTP_X_FORWARDED_FOR": "10.1.2.3", "HTTP_X_REAL_IP": "10.1.2.3"}
    for address in ("10.2.0.1", "::1", "", "unix:", "10.1.2.3.4"):
        assert ask(REMOTE_ADDR=address, **forwarded).status_code == 401, address


def test_by_default_no_address_is_listed() -> None:
    """Not even that of this machine."""
    assert ask(REMOTE_ADDR="127.0.0.1").status_code == 401


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_metrics_are_only_read(method: str, client: Any) -> None:
    """Other methods are refused."""
    assert getattr(client, method)("/metrics").status_code == 405


def test_while_postgresql_is_away_a_token_that_was_good_may_scrape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It learns that PostgreSQL is away; any other token is answered 503."""
    known, unknown = secret_of(), secret_of()
    assert ask(secret=known).status_code == 200
    monkeypatch.setattr(access, "use_token", _raise_away)
    found = parsed(ask(secret=known).text)
    assert value(found, "up", part="postgresql") == 0
    assert value(found, "up", part="redis") == 1
    answer = ask(secret=unknown)
    assert (answer.status_code, answer.content) == (503, b"")


def _raise_away(_secret: str) -> None:
    connection.needs_rollback = False
    with connection.wrap_database_errors:
        raise OperationalError("the server is away")
