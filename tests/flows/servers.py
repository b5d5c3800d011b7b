"""PostgreSQL and Redis of a scene's own: to be killed, frozen, stopped and started again."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import redis
from django.conf import settings

from config.embedded.accounts import server_account
from config.embedded.binaries import postgres_folder
from config.embedded.places import Places
from config.embedded.postgres import DATABASE, Postgres, data_folder
from config.embedded.redis import Redis
from config.embedded.server import Server
from tests.migrated import copy_to
from tests.processes import children
from tests.state_dirs import new_state_dir, remove_state_dir, stop_servers
from tests.waiting import wait_for

START_SECONDS = 300
STOP_SECONDS = 300


class Breakable:
    """One server; the test process is its parent, and it ends with us."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self._server = server
        self._server.start()

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._server.pid is not None, f"{self._server.name} does not run"
        return self._server.pid

    def kill(self) -> None:
        """Kill the server as a power cut would; it stays down until `start`."""
        for pid in [self.pid, *children(self.pid)]:
            _signal(pid, signal.SIGKILL)
        wait_for(lambda: self._server.pid is None, what="the server's end")

    def stop(self) -> None:
        """Stop the server in its ordinary way; it stays down until `start`."""
        os.kill(self.pid, self._server.stop_signal)
        wait_for(lambda: self._server.pid is None, seconds=STOP_SECONDS, what="the server's end")

    def start(self) -> None:
        """Start the server that was killed or stopped; return when it answers."""
        deadline = time.monotonic() + START_SECONDS
        while not (self._server.pid and self._server.answers()):
            assert time.monotonic() < deadline, f"{self._server.name} does not start"
            self._server.watch(time.monotonic())
            time.sleep(0.02)

    def restart(self) -> None:
        """Kill the server, and start it again."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stop the clock for the server: it holds its sockets and answers nothing."""
        _signal(self.pid, signal.SIGSTOP)
        for pid in children(self.pid):
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server continue."""
        for pid in [*children(self.pid), self.pid]:
            _signal(pid, signal.SIGCONT)

    def close(self) -> None:
        """End the server for good, whatever state a scene has left it in."""
        if self._server.pid is not None:
            self.thaw()
        self._server.stop()


class Servers:
    """A PostgreSQL and a Redis on unix sockets, below one state folder.

    With `migrated`, PostgreSQL begins with a migrated database; see `tests/migrated.py`.
    """

    has_own_disk = False

    def __init__(self, state_dir: Path, *, migrated: bool = False) -> None:
        account = server_account()
        self.state_dir = state_dir
        self._places = Places(state_dir)
        self._places.make_sockets(account)
        if migrated:
            copy_to(data_folder(self._places))
        self.postgres = Breakable(Postgres(self._places, account=account))
        self.redis = Breakable(Redis(self._places, account=account))
        if migrated:
            with psycopg.connect(
                self.postgres.url, dbname="postgres", autocommit=True
            ) as connection:
                connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
                connection.execute(f"ALTER DATABASE test_{DATABASE} RENAME TO {DATABASE}")

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """Run one statement on a connection of its own; return its rows, if it has any."""
        with psycopg.connect(self.postgres.url, connect_timeout=10) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def client(self) -> "redis.Redis":
        """Return a client of Redis."""
        path = self.redis.url.removeprefix("redis+socket://").partition("?")[0]
        return redis.Redis(unix_socket_path=path, socket_timeout=5)

    def close(self) -> None:
        """End both, and remove their sockets."""
        self.redis.close()
        self.postgres.close()
        self._places.remove_sockets()


def postgres_program(name: str, *words: str) -> None:
    """Run one of PostgreSQL's programs, which must end well."""
    folder = postgres_folder(Places(settings.STATE_DIR), account=server_account())
    done = subprocess.run([folder / name, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def own_servers(*, migrated: bool = False, disk_bytes: int = 0) -> Iterator[Servers]:
    """Servers of the scene's own; afterwards nothing of them is left.

    With `disk_bytes` they have a disk of their own of this size, in memory, if we may mount one.
    """
    state_dir = new_state_dir()
    is_mounted = bool(disk_bytes) and _mounted(state_dir, disk_bytes)
    try:
        with closing(Servers(state_dir, migrated=migrated)) as servers:
            servers.has_own_disk = is_mounted
            yield servers
    finally:
        if is_mounted:
            stop_servers(state_dir)
            subprocess.run(["umount", str(state_dir)], check=True)
        remove_state_dir(state_dir)


def _mounted(folder: Path, size: int) -> bool:
    options = f"size={size},mode=755"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
