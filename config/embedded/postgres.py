"""The embedded PostgreSQL: its data folder, command line and readiness."""

import os
import shutil
import signal
import time
from pathlib import Path
from urllib.parse import urlencode

import psycopg
from psycopg.pq import Conninfo

from config.embedded.accounts import Account
from config.embedded.binaries import postgres_folder
from config.embedded.children import run, tail
from config.embedded.places import Places
from config.embedded.server import Server

DATABASE = "fairshift"
SUPERUSER = "postgres"
PORT = 5432  # a part of the socket's name; nothing listens on TCP
# Statements and values belong to the users: errors go to the client, not into the log.
QUIET_LOG = {
    "log_min_messages": "log",  # above errors in the server's order: starts, stops and crashes
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",  # no DETAIL, which quotes rows and the statement of a crash
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}
# For a server whose keeper was killed: it got its stop signal then.
LEFTOVER_GRACE_SECONDS = 10.0


def forget_variables() -> None:
    """Remove libpq's variables, such as PGHOST, from the environment of this process.

    They are for another database, and PGSERVICE or PGHOSTADDR would win over a connection's URL.
    """
    for option in Conninfo.get_defaults():
        if option.envvar:
            os.environ.pop(option.envvar.decode(), None)


def data_folder(places: Places) -> Path:
    """Return the folder of PostgreSQL's data."""
    return places.state / "postgres18"


class Postgres(Server):
    """PostgreSQL 18 on a unix socket; durable, as fsync and synchronous_commit stay on."""

    name = "postgres"
    stop_signal = signal.SIGINT  # ends sessions and stops cleanly
    kill_signal = signal.SIGQUIT  # stops at once; the next start recovers

    def __init__(self, places: Places, *, account: Account) -> None:
        super().__init__(places, account=account)
        self._data = data_folder(places)
        # Complete: libpq takes omitted parts from PGPORT and other variables.
        where = urlencode({"host": places.sockets, "port": PORT})
        self.url = f"postgresql://{SUPERUSER}@/{DATABASE}?{where}"

    def prepare(self) -> None:
        """Make the database at the first start; clean up after a killed server."""
        self._programs = postgres_folder(self._places, account=self._account)
        if self._data.exists():
            self._end_leftover()
        else:
            self._make()

    def command(self) -> list[str]:
        """Return the command line of the server."""
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._places.sockets),
            "port": str(PORT),
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **QUIET_LOG,
        }
        settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self._data), *settings]

    def answers(self) -> bool:
        """Say whether a connection works now."""
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError as error:
            self.refusal = " ".join(str(error).split())
            return False
        return True

    def _make(self) -> None:
        draft = self._data.with_name(f"{self._data.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        self._places.folder(draft.name, account=self._account)
        options = {
            "pgdata": str(draft),
            "username": SUPERUSER,
            "encoding": "UTF8",
            # This locale orders text in the same way on every machine.
            "locale-provider": "builtin",
            "builtin-locale": "C.UTF-8",
            "locale": "C",
            # Trust is safe: the socket folder is private, and nothing listens on TCP.
            "auth-local": "trust",
            "auth-host": "reject",
        }
        self._run(["initdb", *(f"--{name}={value}" for name, value in options.items())])
        self._run(
            ["postgres", "--single", "-D", str(draft), "postgres"],
            text=f"CREATE DATABASE {DATABASE}\n",
        )
        # Renamed last: a half-made database is never used.
        draft.rename(self._data)

    def _run(self, command: list[str], *, text: str = "") -> None:
        with self._places.open_log(self.name) as log:
            status = run(
                [str(self._programs / command[0]), *command[1:]],
                account=self._account,
                log=log,
                folder=self._places.state,
                text=text,
            )
        if status != 0:
            path = self._places.log(self.name)
            raise OSError(
                f"{command[0]} ended with status {status}. The end of {path}:\n{tail(path)}"
            )

    def _end_leftover(self) -> None:
        """Wait for a server whose keeper was killed, then kill it."""
        pid_file = self._data / "postmaster.pid"
        deadline = time.monotonic() + LEFTOVER_GRACE_SECONDS
        while (pid := self._running_pid(pid_file)) is not None:
            late = time.monotonic() > deadline
            os.kill(pid, self.kill_signal if late else self.stop_signal)
            os.kill(pid, signal.SIGCONT)  # a frozen one does not notice
            time.sleep(0.1)
        # Its process id may be reused, which would prevent the next start.
        pid_file.unlink(missing_ok=True)
        (self._places.sockets / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)

    def _running_pid(self, pid_file: Path) -> int | None:
        try:
            pid = int(pid_file.read_text(encoding="utf-8").split("\n", 1)[0])
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self._data) in words else None
