"""Debian's own PostgreSQL and Redis, given as URLs, are as good as the embedded ones."""

import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from config.embedded.accounts import Account, server_account
from fleet.stack.stack import free_port
from tests.commands import Done, python
from tests.jobs.keys import KEY_1
from tests.state_dirs import new_state_dir
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
OURS = ("PATH", "HOME")


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """Start both servers on TCP, as CI installs them; return the variables that name them."""
    account = server_account()
    folder = new_state_dir()
    account.give(folder)
    with ExitStack() as ending:
        ending.callback(shutil.rmtree, folder)
        yield {
            "DATABASE_URL": ending.enter_context(_postgres(folder, account)),
            "REDIS_URL": ending.enter_context(_redis(folder, account)),
            "SECRET_KEY": secrets.token_urlsafe(60),
            "ALLOWED_HOSTS": "fairshift.example",
        }


@contextmanager
def _running(command: list[str], folder: Path, account: Account) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=account.uid,
        group=account.gid,
        extra_groups=account.extra_groups,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(200)


@contextmanager
def _postgres(folder: Path, account: Account) -> Iterator[str]:
    program = POSTGRES[-1]
    port, data = free_port(0), folder / "data"
    subprocess.run(
        [program.with_name("initdb"), "-D", data, "-U", "app", "-A", "trust", "-E", "UTF8"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        user=account.uid,
        group=account.gid,
        extra_groups=account.extra_groups,
        check=True,
    )
    url = f"postgresql://app@127.0.0.1:{port}/postgres"

    def answers() -> bool:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            return False
        return True

    command = [str(program), "-D", str(data), "-p", str(port), "-k", str(folder)]
    with _running(command, folder, account):
        wait_for(answers, what="PostgreSQL answers")
        yield url


@contextmanager
def _redis(folder: Path, account: Account) -> Iterator[str]:
    port = free_port(0)
    client = redis.Redis(port=port)

    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    with _running(["redis-server", "--port", str(port), "--save", ""], folder, account):
        wait_for(answers, what="Redis answers")
        yield f"redis://127.0.0.1:{port}/0"


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
