"""PostgreSQL and Redis of a scene's own: to be killed, frozen, stopped and started again."""

import atexit
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import redis

from config.embedded.accounts import Account, server_account
from config.embedded.care import Care, Server
from config.embedded.places import Places
from config.embedded.postgres import Postgres, data_folder
from config.embedded.redis import Redis
from tests.own_servers import new_state_dir, remove_state_dir
from tests.waiting import wait_for

START_SECONDS = 30
STOP_SECONDS = 60
_copy: list[Path] = []
"""A copy of PostgreSQL's data, made after the migration of this process's first installation."""


class Breakable:
    """One server; the test process is its parent, and it ends with us."""

    def __init__(self, server: Server, *, places: Places, account: Account) -> None:
        self.url = server.url
        self._care = Care(server, places=places, account=account)
        self._care.begin()

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._care.pid is not None, f"{self._care.server.name} does not run"
        return self._care.pid

    def kill(self) -> None:
        """Kill the server as a power cut would; it stays down until `start`."""
        for pid in [self.pid, *_children(self.pid)]:
            _signal(pid, signal.SIGKILL)
        wait_for(lambda: self._care.pid is None, what="the server's end")

    def stop(self) -> None:
        """Stop the server in its ordinary way; it stays down until `start`."""
        os.kill(self.pid, self._care.server.stop_signal)
        wait_for(lambda: self._care.pid is None, seconds=STOP_SECONDS, what="the server's end")

    def start(self) -> None:
        """Start the server that was killed or stopped; return when it answers."""
        deadline = time.monotonic() + START_SECONDS
        while not (self._care.pid and self._care.server.answers()):
            assert time.monotonic() < deadline, f"{self._care.server.name} does not start"
            self._care.watch(time.monotonic())
            time.sleep(0.02)

    def restart(self) -> None:
        """Kill the server, and start it again."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stop the clock for the server: it holds its sockets and answers nothing."""
        _signal(self.pid, signal.SIGSTOP)
        for pid in _children(self.pid):
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server continue."""
        for pid in [*_children(self.pid), self.pid]:
            _signal(pid, signal.SIGCONT)

    def close(self) -> None:
        """End the server for good, whatever state a scene has left it in."""
        if self._care.pid is not None:
            self.thaw()
        self._care.stop()


class Servers:
    """A PostgreSQL and a Redis on unix sockets, below one state folder.

    With `copies`, PostgreSQL begins with a copy of the data of this process's first installation:
    creating and migrating a database takes 6 s of CPU time. All copies have the same
    system_identifier, so the check E204 cannot tell them apart.
    """

    def __init__(self, state_dir: Path, *, copies: bool = False) -> None:
        account = server_account()
        self._places = Places(state_dir)
        self._places.make_sockets(account)
        self._data = data_folder(self._places)
        self._copies = copies
        self.is_copy = copies and bool(_copy)
        if self.is_copy:
            _copied(_copy[0], self._data)
        self.postgres = Breakable(
            Postgres(self._places, account=account), places=self._places, account=account
        )
        self.redis = Breakable(
            Redis(self._places, account=account), places=self._places, account=account
        )

    def keep_copy(self) -> None:
        """Keep the data for later installations, once in a process, until it ends."""
        if self._copies and not _copy:
            folder = new_state_dir()
            atexit.register(_remove, folder, owner=os.getpid())
            self.postgres.stop()
            _copied(self._data, folder / self._data.name)
            self.postgres.start()
            _copy.append(folder / self._data.name)

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


@contextmanager
def own_servers(*, copies: bool = False) -> Iterator[Servers]:
    """Servers of the scene's own; afterwards nothing of them is left."""
    state_dir = new_state_dir()
    try:
        with closing(Servers(state_dir, copies=copies)) as servers:
            yield servers
    finally:
        remove_state_dir(state_dir)


def _remove(folder: Path, *, owner: int) -> None:
    """Remove the copy at the end of this process, not at the end of one that it forked."""
    if os.getpid() == owner:
        shutil.rmtree(folder)


def _copied(data: Path, to: Path) -> None:
    """Copy the data of a stopped PostgreSQL, with the owner of the files."""
    subprocess.run(["cp", "-a", data, to], check=True)


def _children(pid: int) -> list[int]:
    """Return the ids of a process's children, of any of its threads."""
    found: list[int] = []
    for entry in _tasks(pid):
        found += [int(word) for word in _read(entry / "children").split()]
    return found


def _tasks(pid: int) -> Iterator[Path]:
    try:
        yield from Path(f"/proc/{pid}/task").iterdir()
    except OSError:
        return


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # it has just ended


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
