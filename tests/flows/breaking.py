"""Ways to break an installation, each mended at the end of its block."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Final

from tests.flows.installation import Installation
from tests.flows.servers import Breakable
from tests.flows.standby import standby
from tests.pgbouncer import pgbouncer
from tests.waiting import wait_for

Break = Callable[[Installation], AbstractContextManager[dict[str, str]]]
"""Breaks an installation, and yields variables of the command that looks at it."""
DROP: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def given(**variables: str) -> Break:
    """Give the command these variables; the installation stays sound."""
    return lambda _it: nullcontext(variables)


def _servers(
    *names: str, broken: Callable[[Breakable], None], mended: Callable[[Breakable], None]
) -> Break:
    @contextmanager
    def break_them(it: Installation) -> Iterator[dict[str, str]]:
        servers = [getattr(it.servers, name) for name in names]
        for server in servers:
            broken(server)
        try:
            yield {}
        finally:
            for server in servers:
                mended(server)

    return break_them


def hung(*names: str) -> Break:
    """Freeze these servers: they hold their sockets and answer nothing."""
    return _servers(*names, broken=Breakable.freeze, mended=Breakable.thaw)


def away(*names: str) -> Break:
    """Stop these servers."""
    return _servers(*names, broken=Breakable.stop, mended=Breakable.start)


def killed(*names: str) -> Break:
    """Kill these servers as a power cut would."""
    return _servers(*names, broken=Breakable.kill, mended=Breakable.start)


def silent(variable: str, url: str) -> Break:
    """Name a server that lets the command connect over TCP, and never answers."""

    @contextmanager
    def listen(_it: Installation) -> Iterator[dict[str, str]]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            yield {variable: url.format(port=listening.getsockname()[1])}

    return listen


def redis_with(name: str, value: str) -> Break:
    """Break Redis by one of its settings."""

    @contextmanager
    def broken(it: Installation) -> Iterator[dict[str, str]]:
        client = it.servers.client()
        before = client.config_get(name)[name]
        client.config_set(name, value)
        try:
            yield {}
        finally:
            client.config_set(name, before)

    return broken


@contextmanager
def replica(it: Installation) -> Iterator[dict[str, str]]:
    it.servers.client().replicaof("127.0.0.1", "1")
    try:
        yield {}
    finally:
        it.servers.client().replicaof("NO", "ONE")


@contextmanager
def nearly_full(it: Installation) -> Iterator[dict[str, str]]:
    used = int(it.servers.client().info("memory")["used_memory"])
    with redis_with("maxmemory", str(used + 100_000))(it):
        yield {}


@contextmanager
def unable_to_save(it: Installation) -> Iterator[dict[str, str]]:
    """Where its snapshot belongs is a folder."""
    client = it.servers.client()
    before = client.config_get("dbfilename")["dbfilename"]
    (Path(client.config_get("dir")["dir"]) / "folder/in/it").mkdir(parents=True)

    def saved(status: str) -> bool:
        return bool(client.info("persistence")["rdb_last_bgsave_status"] == status)

    client.config_set("dbfilename", "folder")
    try:
        client.bgsave()
        wait_for(lambda: saved("err"), what="a save that fails")
        yield {}
    finally:
        client.config_set("dbfilename", before)
        client.bgsave()
        wait_for(lambda: saved("ok"), what="a save")


@contextmanager
def restarted_redis(it: Installation) -> Iterator[dict[str, str]]:
    """Replace Redis by an empty one."""
    it.servers.redis.restart()
    yield {}


REDIS: Final[dict[str, Break]] = {
    "refused": away("redis"),
    "hung": hung("redis"),
    "read-only": replica,
    "full": redis_with("maxmemory", "1"),
    "replaced": restarted_redis,
}
"""The ways in which Redis fails."""


@contextmanager
def dropped(it: Installation) -> Iterator[dict[str, str]]:
    """End all connections of PostgreSQL, several times in a row."""
    for _ in range(5):
        it.servers.sql(DROP)
    yield {}


@contextmanager
def without_fsync(it: Installation) -> Iterator[dict[str, str]]:
    # One by one: ALTER SYSTEM runs in no transaction block.
    reload = "SELECT pg_reload_conf()"
    for text in ("ALTER SYSTEM SET fsync = off", reload):
        it.statement(text)
    try:
        yield {}
    finally:
        for text in ("ALTER SYSTEM RESET fsync", reload):
            it.statement(text)


def pooled(mode: str, **variables: str) -> Break:
    """Lead the command through PgBouncer in this mode."""

    @contextmanager
    def behind(it: Installation) -> Iterator[dict[str, str]]:
        with pgbouncer(it.urls["DATABASE_URL"], mode=mode) as url:
            yield {"DATABASE_URL": url, **variables}

    return behind


@contextmanager
def failed_over(it: Installation) -> Iterator[dict[str, str]]:
    """The command asks a standby, as after a failover of which the settings know nothing."""
    with standby(it.urls["DATABASE_URL"]) as url:
        yield {"DATABASE_URL": url}


FOR_WEB = {"DATABASE_TRANSACTION_POOLER": "on"}
"""What the settings of web processes say of a pooler in transaction mode, which is right there."""
AWAY: Final[dict[str, tuple[Break, set[str]]]] = {
    "a hung Redis": (hung("redis"), {"E201"}),
    "no Redis": (away("redis"), {"E201"}),
    "a silent Redis": (silent("REDIS_URL", "redis://127.0.0.1:{port}/0"), {"E201"}),
    "a hung PostgreSQL": (hung("postgres"), {"E102"}),
    "no PostgreSQL": (away("postgres"), {"E102"}),
    "a silent PostgreSQL": (
        silent("DATABASE_URL", "postgresql://fairshift:x@127.0.0.1:{port}/fairshift"),
        {"E102"},
    ),
    "both hung": (hung("redis", "postgres"), {"E102", "E201"}),
}
"""Servers that do not answer: how, and the ids that the command then finds."""
BROKEN: Final[dict[str, tuple[Break, str, *tuple[str, ...]]]] = {
    "a replica": (replica, "D203", "REPLICAOF NO ONE"),
    "a full Redis": (nearly_full, "D204", "Raise maxmemory"),
    "a Redis that cannot save": (unable_to_save, "D202", "is its disk full"),
    "a Redis that stores nothing": (
        given(REPORTED="fairshift.D201"),
        *("D201", "Set appendonly to yes"),
    ),
    "pickle": (given(ACCEPTED="json pickle"), "E003", "Set CELERY_ACCEPT_CONTENT to ['json']"),
    "no fsync": (without_fsync, "E104", "Set fsync to on"),
    "a standby": (
        failed_over,
        *("D102", "PostgreSQL is a standby", "to the primary server, promote this one"),
    ),
    "a pooler of transactions": (
        pooled("transaction"),
        *("D101", "between transactions", "pool_mode = session"),
    ),
    "a pooler of statements": (
        pooled("statement"),
        *("D101", "between statements", "pool_mode = session"),
    ),
    "a pooler of web processes": (pooled("transaction", **FOR_WEB), "D110", "note", "Workers"),
    "a pooler that breaks web processes": (
        pooled("statement", **FOR_WEB),
        *("D101", "broken", "Workers"),
    ),
}
"""Faults: how, the id that the command then finds, and parts of what it says.

System checks have their own tests in tests/jobs/checks: two of them are here.
"""


@contextmanager
def repeated(act: Callable[[], object], *, seconds: float) -> Iterator[None]:
    """Repeat an act in a thread, with these pauses, until the block ends."""
    is_over = Event()

    def repeat() -> None:
        while not is_over.wait(seconds):
            act()

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
