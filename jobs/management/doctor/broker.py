"""Redis: the system checks of it, and what an operator may have changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from celery import current_app
from django.core.checks import CheckMessage, Error, Info
from django.core.checks import Warning as Caution
from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

from fleet import Broker, BrokerUnavailable, fair_queues, refused_commands
from jobs.checks import broker
from jobs.management.doctor.part import Look, Unreachable, named

PATIENCE_PART: Final = 0.8
"""Of all seconds, those that Redis has for one answer."""
FULL: Final = 0.9
"""The part of maxmemory that is reported."""


@contextmanager
def reached(seconds: float) -> Iterator[Redis]:
    """Give a client of Redis that has had an answer to `PING`; raise Unreachable."""
    broker_of_app = Broker(current_app._get_current_object())
    try:
        with broker_of_app.client(timeout=seconds * PATIENCE_PART) as client:
            # A user that may not ask has an answer, too.
            with suppress(ResponseError, NoPermissionError):
                client.ping()
            yield client
    except BrokerUnavailable as error:
        reason = str(error)
        found = broker.password_refused(reason) if broker_of_app.refuses_password else None
        raise Unreachable(reason, found) from error


def looks(client: Redis) -> list[tuple[str, Look]]:
    """Return the checks of Redis, by name."""
    refused: list[str] = []

    def made(look: Callable[[Redis], Iterable[CheckMessage]], name: str) -> Iterator[CheckMessage]:
        try:
            yield from look(client)
        except NoPermissionError:
            refused.append(name)
        except ResponseError as error:
            yield _refuses(error)

    def not_looked_at() -> Iterator[CheckMessage]:
        if refused:
            yield _not_looked_at(client, refused)

    each = [(look.__name__.strip("_"), look) for look in LOOKS]
    return [*((name, partial(made, look, name)) for name, look in each), *named([not_looked_at])]


def persistence(client: Redis) -> Iterator[CheckMessage]:
    """Report a Redis that stores nothing."""
    if client.info("persistence").get("aof_enabled"):
        return
    try:
        save = client.config_get("save").get("save", "")
    except (NoPermissionError, ResponseError):
        return  # it may have RDB snapshots
    if not save:
        yield Caution(
            "Redis has neither an append-only file nor snapshots: after its restart, plain tasks"
            " and runs of jobs without history are lost. Durable runs are published again.",
            hint="Set appendonly to yes. If all your tasks are durable, add fairshift.D201 to"
            " SILENCED_SYSTEM_CHECKS.",
            id="fairshift.D201",
        )


def saving(client: Redis) -> Iterator[CheckMessage]:
    """Report a Redis that could not save, and so refuses writes."""
    facts = client.info("persistence")
    failed = [
        name
        for name in ("rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status")
        if facts.get(name, "ok") != "ok"
    ]
    if failed:
        yield Error(
            f"Redis could not save ({', '.join(failed)}): it refuses writes until it can.",
            hint="Look at its log: is its disk full, or its folder not writable?",
            id="fairshift.D202",
        )


def role(client: Redis) -> Iterator[CheckMessage]:
    """Report a replica, which takes no writes."""
    if client.info("replication")["role"] != "master":
        yield Error(
            "Redis is a replica: it refuses writes, and no worker gets a run.",
            hint="Correct CELERY_BROKER_URL (REDIS_URL in Fairshift's own project) to the master,"
            " or make this one the master: REPLICAOF NO ONE. For Sentinel use a sentinel:// URL.",
            id="fairshift.D203",
        )


def memory(client: Redis) -> Iterator[CheckMessage]:
    """Report a Redis that is nearly full; a full one refuses writes."""
    facts = client.info("memory")
    limit, used = facts["maxmemory"], facts["used_memory"]
    if limit and used > limit * FULL:
        yield Error(
            f"Redis uses {used / limit:.0%} of its maxmemory: when it is full it refuses writes,"
            " and no worker gets a run.",
            hint="Raise maxmemory, or remove what else is in this Redis. Runs wait in PostgreSQL"
            " meanwhile.",
            id="fairshift.D204",
        )


def rights(client: Redis) -> Iterator[CheckMessage]:
    """Report commands that the fair queues need and that this user may not send."""
    for queue in fair_queues(current_app):
        try:
            refused = ", ".join(refused_commands(client, queue))
        except NoPermissionError as error:
            refused = str(error)
        if refused:
            yield Error(
                f"Redis's user {_user_of(client)} lacks rights on the keys of queue {queue!r}:"
                f" {refused}.",
                hint="Give it the rights that SECURITY.md lists for its kind of process, with ACL"
                " SETUSER.",
                id="fairshift.D205",
            )


def _refuses(error: ResponseError) -> CheckMessage:
    return Error(
        f"Redis refuses a command: {error}",
        hint="The other messages about Redis may name the cause; else look at its log.",
        id="fairshift.D206",
    )


def _not_looked_at(client: Redis, looks: list[str]) -> CheckMessage:
    return Info(
        f"Not looked at: Redis's {', '.join(looks)}. Its user {_user_of(client)} may not ask.",
        hint="Run doctor with the URL of Redis's user of the system worker as well.",
        id="fairshift.D207",
    )


def _user_of(client: Redis) -> Any:
    return client.connection_pool.connection_kwargs.get("username") or "default"


LOOKS: Final = (role, memory, saving, *broker.SERVER_LOOKS, persistence, rights)
