"""config/embedded: servers that start by themselves, are shared, and leave nothing behind."""

import json
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import psycopg
import pytest

from config.embedded.__main__ import stop
from config.embedded.client import kept
from config.embedded.keeper import LINGER_SECONDS
from config.embedded.places import Places
from tests.commands import python
from tests.preloaded import Preloaded
from tests.state_dirs import new_state_dir, remove_state_dir
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

CLIENT = """
import json, pathlib, sys
from config.embedded import ensure
print(json.dumps(ensure(sys.argv[2:], state_dir=pathlib.Path(sys.argv[1]))), flush=True)
sys.stdin.read()
"""


class World:
    """One installation, and the client processes that use it."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.clients: list[subprocess.Popen[str]] = []

    def client(
        self, *servers: str, **variables: str
    ) -> tuple[subprocess.Popen[str], dict[str, str]]:
        """Start a process that uses the servers until its input ends; return it and the URLs."""
        process = Preloaded(
            ["-c", CLIENT, str(self.places.state), *(servers or ("postgres", "redis"))],
            os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.clients.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the client ended without URLs"
        return process, json.loads(line)

    @property
    def keeper(self) -> int:
        """The process that owns the servers."""
        [pid, _urls] = kept(self.places)
        assert pid is not None
        return pid

    def pids(self) -> dict[str, int]:
        """Return the process ids of the servers that run."""
        words = ("postgres -D", "redis-server")
        children = [line.split(" ", 1) for line in self.processes()]
        by_name = zip(("postgres", "redis"), words, strict=True)
        return {name: int(pid) for name, word in by_name for pid, line in children if word in line}

    def is_empty(self) -> bool:
        """Say whether all processes, locks and sockets of the servers are gone."""
        files = (self.places.sockets, self.postmaster_pid)
        is_locked = kept(self.places)[0] is not None
        return not (is_locked or any(path.exists() for path in files) or self.processes())

    def processes(self) -> list[str]:
        """Return ids and command lines that name this installation's folders, clients aside."""
        ours = {os.getpid(), *(client.pid for client in self.clients)}
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            names = (str(self.places.state), str(self.places.sockets))
            keeps = "config.embedded keep" in line and names[0] in environment
            if int(entry.name) not in ours and (keeps or any(name in line for name in names)):
                found.append(f"{entry.name} {line}")
        return found

    @property
    def postmaster_pid(self) -> Path:
        return self.places.state / "postgres18" / "postmaster.pid"


@contextmanager
def _installation() -> Iterator[World]:
    world = World(Places(new_state_dir()))
    try:
        yield world
    finally:
        for client in world.clients:
            client.kill()
            client.communicate()
        remove_state_dir(world.places.state)


@pytest.fixture
def empty() -> Iterator[World]:
    """An installation before its first start."""
    with _installation() as world:
        yield world


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """The data of a PostgreSQL that was started once, and stopped."""
    with _installation() as world:
        client, _ = world.client("postgres")
        keeper = world.keeper
        end(client)
        os.kill(keeper, signal.SIGTERM)  # it would wait a while for another client
        wait_for(world.is_empty, what="everything stopped and removed")
        yield world.postmaster_pid.parent


@pytest.fixture
def world(empty: World, data: Path) -> World:
    """An installation with data of its own."""
    subprocess.run(["cp", "-a", str(data), str(empty.places.state)], check=True)
    return empty


def answer(url: str) -> str:
    """Return PostgreSQL's major version, which takes a working connection."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0]).split(".")[0]


def end(client: subprocess.Popen[str]) -> None:
    """End a client in the ordinary way."""
    client.communicate("", timeout=300)


def test_two_processes_share_servers_that_stop_after_the_last(empty: World) -> None:
    """Servers start by themselves, are shared, outlive one client and not the last one."""
    first, urls = empty.client()
    second, same_urls = empty.client()
    assert urls == same_urls
    assert answer(urls["postgres"]) == "18"
    running = empty.pids()
    end(first)
    time.sleep(2 * LINGER_SECONDS)
    assert empty.pids() == running
    assert answer(urls["postgres"]) == "18"
    end(second)
    wait_for(empty.is_empty, what="everything stopped and removed")


def test_status_and_stop_are_commands(world: World) -> None:
    """`stop` ends servers that are in use, and both say what is so."""
    ours = os.environ | {"FAIRSHIFT_STATE_DIR": str(world.places.state)}
    world.client("redis")
    said = python("-m", "config.embedded", "status", environ=ours).stdout
    assert said.startswith(f"Running. Data: {world.places.state}\nredis ")
    assert python("-m", "config.embedded", "stop", environ=ours).stdout == "Stopped.\n"
    wait_for(world.is_empty, what="everything stopped and removed")
    said = python("-m", "config.embedded", "status", environ=ours).stdout
    assert said == f"Not running. Data: {world.places.state}\n"


def test_stop_waits_for_servers_that_end_by_themselves(world: World) -> None:
    """What stops them may then copy or remove the data."""
    world.client("postgres")
    postgres = world.pids()["postgres"]
    os.kill(postgres, signal.SIGSTOP)
    thaw = Timer(1, os.kill, (postgres, signal.SIGCONT))
    thaw.start()
    os.kill(world.keeper, signal.SIGTERM)
    wait_for(lambda: not kept(world.places)[1], what="the keeper to end")
    stop(world.places)
    assert world.is_empty()
    thaw.join()


def test_killed_client_holds_nothing(world: World) -> None:
    """The kernel takes a killed client's lock back, so the servers stop all the same."""
    client, _ = world.client()
    client.kill()
    client.wait()
    wait_for(world.is_empty, what="everything stopped and removed")


def test_servers_and_data_are_ready_again_at_the_next_start(world: World) -> None:
    """Committed rows survive a stop, and a client that comes during it waits for a new start."""
    client, urls = world.client("postgres")
    with psycopg.connect(urls["postgres"]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    assert list(kept(world.places)[1]) == ["postgres"]
    os.kill(world.keeper, signal.SIGTERM)
    wait_for(lambda: not kept(world.places)[1], what="the keeper to stop")
    _, urls = world.client("postgres")
    with psycopg.connect(urls["postgres"]) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)
    end(client)


@pytest.mark.parametrize("server", ["postgres", "redis"])
def test_killed_server_starts_again(world: World, server: str) -> None:
    """A server that dies is started again, at the same address."""
    _, urls = world.client()
    killed = world.pids()[server]
    os.kill(killed, signal.SIGKILL)

    def replaced() -> bool:
        return world.pids().get(server, killed) != killed

    wait_for(replaced, what=f"{server} runs again")
    if server == "postgres":
        wait_for(lambda: _works(urls["postgres"]), what="PostgreSQL answers again")


def test_killed_keeper_leaves_no_orphan_in_the_way(world: World) -> None:
    """Its servers stop with it, and a new client gets new ones and then leaves nothing."""
    lost, _ = world.client()
    before = set(world.pids().values())
    os.kill(world.keeper, signal.SIGKILL)
    client, urls = world.client()
    assert answer(urls["postgres"]) == "18"
    assert not set(world.pids().values()) & before
    end(lost)
    end(client)
    wait_for(world.is_empty, what="everything stopped and removed")


# For a database of the user's, as psql has them. Each alone would lead a connection elsewhere.
FOREIGN = {
    "PGHOST": "db.example",
    "PGHOSTADDR": "192.0.2.1",
    "PGPORT": "6432",
    "PGUSER": "ann",
    "PGDATABASE": "shop",
    "PGOPTIONS": "-c search_path=shop",
    "PGSERVICE": "shop",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGSSLMODE": "verify-full",
}
ASK = """
import django
django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT current_user, current_database()")
    print(*cursor.fetchone())
"""


def test_variables_of_libpq_lead_nowhere_else(empty: World) -> None:
    """With PGHOST, PGPORT, PGUSER and others set, servers start, and the project reaches them."""
    begun = time.monotonic()
    client, urls = empty.client("postgres", **FOREIGN)
    assert time.monotonic() - begun < 30
    assert "port=5432" in urls["postgres"]
    assert answer(urls["postgres"]) == "18"
    ours = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ours["FAIRSHIFT_STATE_DIR"] = str(empty.places.state)
    ours["DJANGO_SETTINGS_MODULE"] = "config.settings"
    asked = python("-c", ASK, environ=ours | FOREIGN)
    assert asked.stdout.split() == ["postgres", "fairshift"], asked.stderr
    end(client)


def test_a_failed_start_is_one_clear_error(empty: World) -> None:
    """A command of the project ends with the reason and the log's end, without a traceback."""
    (empty.places.state / "postgres18").mkdir()
    environ = os.environ | {"FAIRSHIFT_STATE_DIR": str(empty.places.state)}
    done = python("manage.py", "check", environ=environ)
    assert done.returncode == 1
    assert done.stderr.startswith("ImproperlyConfigured: postgres did not start.")
    assert "Traceback" not in done.stderr


def test_logs_are_their_owners_and_name_no_values(world: World) -> None:
    """Files 0600 in a folder 0700; of a statement that failed nothing is in PostgreSQL's log."""
    _, urls = world.client()
    with psycopg.connect(urls["postgres"], autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (name text UNIQUE, number int)")
        connection.execute("INSERT INTO kept VALUES ('secret-1', 1)")
        for statement, values in (
            ("INSERT INTO kept VALUES (%s, 2)", ("secret-1",)),
            ("SELECT 'secret-2'::int", ()),
            ("SELECT %s / 0, 'secret-3'", (1,)),
            ("SELECT nothing FROM secret_4", ()),
        ):
            with pytest.raises(psycopg.Error):
                connection.execute(statement, values)
    log = world.places.log("postgres")
    text = log.read_text()
    assert "ready to accept connections" in text
    assert "secret" not in text
    assert log.parent.stat().st_mode & 0o777 == 0o700
    logs = {path.name: path.stat().st_mode & 0o777 for path in log.parent.iterdir()}
    assert logs == {"postgres.log": 0o600, "redis.log": 0o600, "keeper.log": 0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the user")
def test_as_root_the_servers_have_a_user_of_their_own(world: World) -> None:
    """Not `nobody`, as whom other programs run: they could read and write all of the data."""
    _, urls = world.client()
    assert answer(urls["postgres"]) == "18"
    data = world.places.state / "postgres18"
    [uid] = {Path(f"/proc/{pid}").stat().st_uid for pid in world.pids().values()}
    assert pwd.getpwuid(uid).pw_name == "fairshift-servers"
    assert {path.lstat().st_uid for path in (data, *data.rglob("*"))} == {uid}
    assert data.stat().st_mode & 0o777 == 0o700


def _works(url: str) -> bool:
    try:
        return answer(url) == "18"
    except psycopg.OperationalError:
        return False
