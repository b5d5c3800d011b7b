"""Debian's PgBouncer before a scene's PostgreSQL, in any of its three modes."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import psycopg

from config.embedded.accounts import server_account
from fleet.stack.stack import free_port
from tests.state_dirs import new_state_dir
from tests.waiting import wait_for

PROGRAM: Final = "/usr/sbin/pgbouncer"
CONFIG: Final = """
[databases]
* = host={host} port={server_port} user=postgres connect_query='SET jit = off'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pgbouncer(url: str, *, mode: str, size: int = 10) -> Iterator[str]:
    """Run PgBouncer before the server of a URL; yield the URL of the same database behind it."""
    parts = urlsplit(url)
    where = parse_qs(parts.query)
    port = free_port(0)
    folder = new_state_dir()
    account = server_account()
    account.give(folder)
    config = Path(folder, "pgbouncer.ini")
    config.write_text(
        CONFIG.format(
            host=where["host"][0], server_port=where["port"][0], port=port, mode=mode, size=size
        )
    )
    process = subprocess.Popen(
        [PROGRAM, "--quiet", str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=account.uid,
        group=account.gid,
        extra_groups=account.extra_groups,
    )
    behind = f"postgresql://postgres@127.0.0.1:{port}{parts.path}"

    def answers() -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(behind, autocommit=True).close()
            return True
        return False

    try:
        wait_for(answers, what="PgBouncer answers")
        yield behind
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)
