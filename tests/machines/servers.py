"""PostgreSQL with a synchronous standby, and Redis with a replica and three Sentinels, by Debian.

The scene itself reaches both by sockets in folders, which no cut touches.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import psycopg
import redis

from config.embedded.accounts import Account
from jobs.management.stack.stack import Program
from tests.machines.network import Machine
from tests.waiting import wait_for

BINARIES: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SENTINEL_CONFIGURATION: Final = """
port 26379
bind {own}
protected-mode no
sentinel monitor main {master} 6379 2
sentinel down-after-milliseconds main 3000
sentinel failover-timeout main 10000
sentinel parallel-syncs main 1
"""


def _as(account: Account, *words: str) -> list[str]:
    """Return a command of the servers' user that ends with us."""
    user = ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    return [*user, "--pdeathsig=KILL", *words]


class Database:
    """One PostgreSQL on one machine."""

    def __init__(self, machine: Machine, folder: Path, *, account: Account) -> None:
        self.machine, self._account = machine, account
        self._folder = folder / machine.name
        self._folder.mkdir()
        account.give(self._folder)
        self._data = self._folder / "data"
        self.url = f"postgresql:///postgres?user=app&host={self._folder}"

    def make(self) -> None:
        """Make an empty database that the network may use."""
        self._run("initdb", "-D", str(self._data), "-U", "app", "-A", "trust", "-E", "UTF8")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
            rules.write("host replication all 10.77.0.0/24 trust\n")

    def copy(self, primary: Database) -> None:
        """Be a standby of another one; return when it is synchronous."""
        words = ("-D", str(self._data), "-h", str(primary._folder), "-U", "app")
        self._run("pg_basebackup", *words, "--checkpoint=fast")
        (self._data / "standby.signal").touch()
        given = f"host={primary.machine.address} user=app application_name=standby"
        with (self._data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{given}'\n")
        for path in ("standby.signal", "postgresql.auto.conf"):
            self._account.give(self._data / path)
        self.start()
        primary.tell("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.tell("SELECT pg_reload_conf()")
        synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_for(lambda: primary.ask(synchronous) == 1, seconds=30, what="the standby")

    def start(self) -> None:
        """Start it on its machine; return when it answers."""
        options = ["-D", str(self._data), "-k", str(self._folder)]
        options += ["-c", f"listen_addresses={self.machine.address}", "-c", "max_connections=200"]
        program = Program("postgres", _as(self._account, str(BINARIES[-1] / "postgres"), *options))
        self.machine.start(program, logs=self._folder / "logs")
        wait_for(self._answers, seconds=60, what=f"PostgreSQL on {self.machine.name}")

    def promote(self) -> None:
        """Make the standby the primary."""
        assert self.ask("SELECT pg_promote(true, 30)") is True

    def ask(self, query: str, *values: object) -> object:
        """Return the one value that a query answers."""
        with psycopg.connect(self.url, connect_timeout=10) as connection:
            row = connection.execute(query, values).fetchone()  # type: ignore[call-overload]
            return row and row[0]

    def tell(self, statement: str) -> None:
        """Run a statement outside of a transaction."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            return self.ask("SELECT true") is True
        return False

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            _as(self._account, str(BINARIES[-1] / program), *words),
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


class Cache:
    """One Redis on one machine."""

    def __init__(self, machine: Machine, folder: Path, *, account: Account) -> None:
        self.machine, self._account = machine, account
        self._folder = folder / machine.name
        self._folder.mkdir()
        account.give(self._folder)
        self.client = redis.Redis(unix_socket_path=str(self._folder / "socket"), socket_timeout=5)

    def start(self, *, replica_of: Cache | None = None) -> None:
        """Start it, empty; return when it answers."""
        options = ["--bind", self.machine.address, "--protected-mode", "no", "--save", ""]
        options += ["--dir", str(self._folder), "--unixsocket", str(self._folder / "socket")]
        if replica_of is not None:
            options += ["--replicaof", replica_of.machine.address, "6379"]
        program = Program("redis", _as(self._account, "redis-server", *options))
        self.machine.start(program, logs=self._folder / "logs")
        wait_for(self._answers, seconds=30, what=f"Redis on {self.machine.name}")

    def is_master(self) -> bool:
        with suppress(redis.RedisError):
            return bool(self.client.role()[0] == b"master")
        return False

    def _answers(self) -> bool:
        with suppress(redis.RedisError):
            return bool(self.client.ping())
        return False


def start_sentinel(machine: Machine, folder: Path, *, master: Cache, account: Account) -> None:
    """Start a Sentinel on a machine; it finds the others by the master."""
    home = folder / f"sentinel-{machine.name}"
    home.mkdir(exist_ok=True)
    account.give(home)
    path = home / "sentinel.conf"
    # A Sentinel writes what it has learnt into its file.
    if not path.exists():
        given = {"own": machine.address, "master": master.machine.address}
        path.write_text(SENTINEL_CONFIGURATION.format_map(given))
        account.give(path)
    words = _as(account, "redis-server", str(path), "--sentinel")
    machine.start(Program("sentinel", words), logs=home / "logs")
