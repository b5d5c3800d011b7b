"""Ways to break the servers of an installation, each mended at the end of its block."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from tests.flows.installation import Installation
from tests.waiting import wait_for

Break = Callable[[Installation], AbstractContextManager[None]]


@contextmanager
def hung_redis(it: Installation) -> Iterator[None]:
    it.servers.redis.freeze()
    try:
        yield
    finally:
        it.servers.redis.thaw()


@contextmanager
def hung_postgres(it: Installation) -> Iterator[None]:
    it.servers.postgres.freeze()
    try:
        yield
    finally:
        it.servers.postgres.thaw()


@contextmanager
def both_hung(it: Installation) -> Iterator[None]:
    with hung_redis(it), hung_postgres(it):
        yield


@contextmanager
def no_redis(it: Installation) -> Iterator[None]:
    it.servers.redis.stop()
    try:
        yield
    finally:
        it.servers.redis.start()


@contextmanager
def no_postgres(it: Installation) -> Iterator[None]:
    it.servers.postgres.stop()
    try:
        yield
    finally:
        it.servers.postgres.start()


def redis_with(name: str, value: str) -> Break:
    """Break Redis by one of its settings."""

    @contextmanager
    def broken(it: Installation) -> Iterator[None]:
        client = it.servers.client()
        before = client.config_get(name)[name]
        client.config_set(name, value)
        try:
            yield
        finally:
            client.config_set(name, before)

    return broken


@contextmanager
def foreign_redis(it: Installation) -> Iterator[None]:
    """As if another installation had used this Redis before."""
    client = it.servers.client()
    ours = client.get("fairshift:installation")
    client.set("fairshift:installation", "7/other")
    try:
        yield
    finally:
        client.set("fairshift:installation", ours or b"")


@contextmanager
def replica(it: Installation) -> Iterator[None]:
    it.servers.client().replicaof("127.0.0.1", "1")
    try:
        yield
    finally:
        it.servers.client().replicaof("NO", "ONE")


@contextmanager
def nearly_full(it: Installation) -> Iterator[None]:
    used = int(it.servers.client().info("memory")["used_memory"])
    with redis_with("maxmemory", str(used + 100_000))(it):
        yield


@contextmanager
def unable_to_save(it: Installation) -> Iterator[None]:
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
        yield
    finally:
        client.config_set("dbfilename", before)
        client.bgsave()
        wait_for(lambda: saved("ok"), what="a save")


RELOAD: Final = "SELECT pg_reload_conf()"


def postgres_with(broken: str, mended: str) -> Break:
    """Break PostgreSQL by a statement, and mend it by another one; both take effect at once."""

    @contextmanager
    def break_it(it: Installation) -> Iterator[None]:
        # One by one: ALTER SYSTEM runs in no transaction block.
        for text in (broken, RELOAD):
            it.statement(text)
        try:
            yield
        finally:
            for text in (mended, RELOAD):
                it.statement(text)

    return break_it


NEWER = "INSERT INTO django_migrations (app, name, applied) VALUES ('jobs', '9999_later', now())"
BROKEN: Final[list[tuple[str, Break, dict[str, str], str, str]]] = [
    (
        "an evicting Redis",
        redis_with("maxmemory-policy", "allkeys-lru"),
        {},
        "E203",
        "maxmemory-policy to noeviction",
    ),
    ("another's Redis", foreign_redis, {}, "E204", "Give each installation a Redis"),
    ("a replica", replica, {}, "D203", "REPLICAOF NO ONE"),
    ("a full Redis", nearly_full, {}, "D204", "Raise maxmemory"),
    ("a Redis that cannot save", unable_to_save, {}, "D202", "is its disk full"),
    (
        "a Redis that stores nothing",
        lambda _it: nullcontext(),
        {"REPORTED": "fairshift.D201"},
        "D201",
        "Set appendonly to yes",
    ),
    (
        "pickle",
        lambda _it: nullcontext(),
        {"ACCEPTED": "json pickle"},
        "E003",
        "Set CELERY_ACCEPT_CONTENT to ['json']",
    ),
    (
        "a misspelt key",
        lambda _it: nullcontext(),
        {"MISSPELT": "LEASE_SECOND"},
        "E001",
        "Did you mean LEASE_SECONDS?",
    ),
    (
        "a short lease",
        lambda _it: nullcontext(),
        {"FAIRSHIFT_LEASE_SECONDS": "0.6"},
        "E002",
        "to at least twice",
    ),
    (
        "no wait for the disk",
        postgres_with(
            "ALTER ROLE postgres SET synchronous_commit = off",
            "ALTER ROLE postgres RESET synchronous_commit",
        ),
        {},
        "E104",
        "Set synchronous_commit to on",
    ),
    (
        "no fsync",
        postgres_with("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM RESET fsync"),
        {},
        "E104",
        "Set fsync to on",
    ),
    (
        "a read-only user",
        postgres_with(
            "ALTER ROLE postgres SET default_transaction_read_only = on",
            # A session of this role begins read-only.
            "BEGIN READ WRITE; ALTER ROLE postgres RESET default_transaction_read_only; COMMIT",
        ),
        {},
        "D102",
        "default_transaction_read_only to off",
    ),
    (
        "a newer database",
        postgres_with(NEWER, "DELETE FROM django_migrations WHERE name = '9999_later'"),
        {},
        "D105",
        "Install that version here, too",
    ),
]
"""By name: how, the variables of the command, the id that it then finds, a part of the fix."""
