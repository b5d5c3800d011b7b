"""Debian's own PostgreSQL and Redis, given as URLs, are as good as the embedded ones."""

import os
import re
import secrets
from collections.abc import Iterator

import psycopg
import pytest
import redis

from tests.commands import Done, python
from tests.debian import debian_servers
from tests.jobs.keys import KEY_1

pytestmark = pytest.mark.proof

OURS = ("PATH", "HOME")


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """Start both servers on TCP, as CI installs them; return the variables that name them."""
    with debian_servers() as found:
        yield {
            **found,
            "SECRET_KEY": secrets.token_urlsafe(60),
            "ALLOWED_HOSTS": "fairshift.example",
        }


def manage(urls: dict[str, str], *words: str) -> Done:
    """Run manage.py on these servers, with no other variable of ours."""
    ours = {name: os.environ[name] for name in OURS if name in os.environ}
    return python("manage.py", *words, environ=ours | urls)


def test_migrated_installation_passes_every_check(urls: dict[str, str]) -> None:
    """PostgreSQL 15 or newer and Redis 7 take the migrations and break no promise."""
    assert "fairshift.E105" in manage(urls, "check", "--deploy").stderr
    migrated = manage(urls, "migrate", "--verbosity", "0")
    assert migrated.returncode == 0, migrated.stderr
    keys = {"FAIRSHIFT_ENCRYPTION_KEYS": KEY_1}
    checked = manage(urls | keys, "check", "--deploy", "--database", "default")
    assert checked.returncode == 0, checked.stderr
    # Debian puts the fixes into its Redis 7.0, of which Redis itself has no patched release.
    assert set(re.findall(r"fairshift\.\w+", checked.stderr)) <= {"fairshift.W205"}


def test_unsafe_servers_are_found(urls: dict[str, str]) -> None:
    """A setting that an operator switched off is found on a live server, by name."""
    with psycopg.connect(urls["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("ALTER ROLE app SET synchronous_commit = off")
    client = redis.Redis.from_url(urls["REDIS_URL"])
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.set("fairshift:installation", "1/other")
    found = manage(urls, "check", "--deploy").stderr
    for check in ("E104", "E203", "E204"):
        assert f"fairshift.{check}" in found
