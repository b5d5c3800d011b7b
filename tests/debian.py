"""Debian's PostgreSQL, with LLVM, and Redis, with the configuration that they are shipped with."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

from config.embedded.accounts import Account, server_account
from jobs.management.stack.stack import free_port
from tests.state_dirs import new_state_dir
from tests.waiting import answers, wait_for

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@contextmanager
def debian_servers() -> Iterator[dict[str, str]]:
    """Run both on TCP, empty; yield the variables that name them."""
    with own_folder() as (folder, account), ExitStack() as ending:
        yield {
            "DATABASE_URL": ending.enter_context(_postgres(folder, account)),
            "REDIS_URL": ending.enter_context(_redis(folder, account)),
        }


@contextmanager
def own_folder() -> Iterator[tuple[Path, Account]]:
    """Yield a folder for a server of Debian's, and the account that it runs under."""
    account = server_account()
    folder = new_state_dir()
    account.give(folder)
    try:
        yield folder, account
    finally:
        shutil.rmtree(folder)


def as_account(account: Account, folder: Path) -> dict[str, Any]:
    """Return the options of `subprocess` by which a program runs as this account, and silently."""
    return {
        "cwd": folder,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "user": account.uid,
        "group": account.gid,
        "extra_groups": account.extra_groups,
    }


@contextmanager
def running(
    command: list[str], folder: Path, account: Account, *, ending: int = signal.SIGINT
) -> Iterator[None]:
    """Run a server, which this signal ends."""
    process = subprocess.Popen(command, **as_account(account, folder))
    try:
        yield
    finally:
        process.send_signal(ending)
        process.wait(200)


@contextmanager
def _postgres(folder: Path, account: Account) -> Iterator[str]:
    program = POSTGRES[-1]
    port, data = free_port(0), folder / "data"
    initdb = [program.with_name("initdb"), "-D", data, "-U", "app", "-A", "trust", "-E", "UTF8"]
    subprocess.run(initdb, check=True, **as_account(account, folder))
    url = f"postgresql://app@127.0.0.1:{port}/postgres"
    command = [str(program), "-D", str(data), "-p", str(port), "-k", str(folder)]
    with running(command, folder, account):
        wait_for(lambda: connects(url), what="PostgreSQL answers")
        yield url


@contextmanager
def _redis(folder: Path, account: Account) -> Iterator[str]:
    port = free_port(0)
    with running(["redis-server", "--port", str(port), "--save", ""], folder, account):
        wait_for(lambda: answers(redis.Redis(port=port)), what="Redis answers")
        yield f"redis://127.0.0.1:{port}/0"


def connects(url: str) -> bool:
    """Say whether PostgreSQL, or what stands before it, accepts a connection."""
    try:
        psycopg.connect(url, autocommit=True).close()
    except psycopg.OperationalError:
        return False
    return True
