"""Debian's PgBouncer before a scene's PostgreSQL, in any of its three modes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

from jobs.management.stack.stack import free_port
from tests.debian import connects, own_folder, running
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
    behind = f"postgresql://postgres@127.0.0.1:{port}{parts.path}"
    with own_folder() as (folder, account):
        config = folder / "pgbouncer.ini"
        config.write_text(
            CONFIG.format(
                host=where["host"][0], server_port=where["port"][0], port=port, mode=mode, size=size
            )
        )
        command = [PROGRAM, "--quiet", str(config)]
        # After SIGINT it would wait for its clients.
        with running(command, folder, account, ending=signal.SIGKILL):
            wait_for(lambda: connects(behind), what="PgBouncer answers")
            yield behind
