"""Whether this web process can serve requests. No answer has a name of an owner or a server."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from fleet import BrokerUnavailable
from jobs.pages.metrics.aside import Aside
from jobs.runs import dispatch

SECONDS: Final = 1.0
"""How long each server has to answer."""

AWAY: Final = f"PostgreSQL does not answer within {SECONDS:g} s."
UNMIGRATED: Final = "Migrations are missing: run `manage.py migrate`."

_is_asking: Final = threading.Lock()
_migrated: Final = threading.Event()
"""Set when all migrations of this process's code were found applied: they stay so."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """The reasons why this process cannot serve, empty if it can, and whether Redis answers.

    Without Redis it can: submits are stored, and published later.
    """

    reasons: tuple[str, ...]
    has_redis: bool
    refuses_password: bool = False

    @property
    def is_ready(self) -> bool:
        return not self.reasons

    def as_json(self) -> dict[str, Any]:
        redis = "answers" if self.has_redis else "does not answer"
        if self.refuses_password:
            redis = "refuses the password"
        return {"is_ready": self.is_ready, "reasons": list(self.reasons), "redis": redis}


def readiness() -> Readiness:
    """Ask both servers, for a second each at most, at the same time."""
    redis = Aside(_ping)
    reasons = _reasons()
    try:
        has_redis = redis.result(seconds=SECONDS)
    except (BrokerUnavailable, TimeoutError):
        has_redis = False
    return Readiness(reasons, has_redis, not has_redis and dispatch.broker().refuses_password)


def _reasons() -> tuple[str, ...]:
    # One question at a time: threads would pile up before a server that is silent.
    if not _is_asking.acquire(timeout=SECONDS):
        return (AWAY,)
    try:
        is_migrated = Aside(_find_migrated).result(seconds=SECONDS)
    except (Error, TimeoutError):
        return (AWAY,)
    return () if is_migrated else (UNMIGRATED,)


def _find_migrated() -> bool:
    """Say whether all migrations are applied, over a connection of this thread's own."""
    try:
        if not _migrated.is_set():
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return False
            _migrated.set()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return True
    finally:
        connection.close()
        _is_asking.release()


def _ping() -> bool:
    with dispatch.broker().client(timeout=SECONDS) as client:
        return bool(client.ping())
