"""Checks of Redis: its version, its settings, and which installation uses it."""

import re
from collections.abc import Iterator
from typing import Any, Final

from celery import Celery, current_app
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.db import DatabaseError, connections
from redis import Redis

from fleet import installation_key, refuses_password
from jobs.checks.broker_versions import REDIS_FLOORS, VALKEY_FLOORS, oldest_patched
from jobs.core.conf import unknown_settings, wrong_settings
from jobs.models import Worker
from jobs.system.unserved import unserved

OLDEST_VERSION = (6, 2)
INSTALLATION: Final = re.compile(r"\d+/.+")
"""An `_installation_id`: the identity of a PostgreSQL server, and a database."""


@register("fairshift", deploy=True)
def check_broker(**_arguments: Any) -> list[CheckMessage]:
    """Refuse a Redis that is old, insecure, drops messages, or is another installation's."""
    try:
        with current_app.connection_for_write(connect_timeout=5) as connection:
            # Without this, Celery would retry for long.
            connection.ensure_connection(max_retries=1, timeout=5)
            client = connection.default_channel.client
            looks = (*SERVER_LOOKS, _installation)
            found = [message for look in looks for message in look(client)]
    except Exception as error:
        # Kombu, redis-py and sockets each raise classes of their own here.
        reason = " ".join(str(error).split()) or type(error).__name__
        return [password_refused(reason) if refuses_password(error) else unreachable(reason)]
    if unknown_settings() or wrong_settings():
        return found  # other checks report these; no setting can be read
    return [*found, *_unserved()]


def unreachable(reason: str) -> CheckMessage:
    """Return the error of a Redis that does not answer."""
    return Error(
        f"Redis does not answer: {reason}",
        hint="Start it, or correct CELERY_BROKER_URL (REDIS_URL in Fairshift's own project).",
        id="fairshift.E201",
    )


def password_refused(reason: str) -> CheckMessage:
    """Return the error of a Redis that refuses the user or the password of its URL."""
    return Error(
        f"Redis refuses the password: {reason}",
        hint="Put the new one into CELERY_BROKER_URL (REDIS_URL in Fairshift's own project), and"
        " restart web processes, workers and beat (SECURITY.md).",
        id="fairshift.E206",
    )


def installation_problems(app: Celery) -> list[CheckMessage]:
    """Return an error if Redis is another installation's; nothing if a server does not answer."""
    try:
        with app.connection_for_write(connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
            return list(_installation(connection.default_channel.client))
    except Exception:  # as above
        return []


def _age(client: Redis) -> Iterator[CheckMessage]:
    version = str(client.info("server")["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_VERSION:
        oldest = ".".join(str(part) for part in OLDEST_VERSION)
        yield Error(
            f"Redis {version} is too old.",
            hint=f"Use Redis {oldest} or newer, or Valkey.",
            id="fairshift.E202",
        )


def _known_faults(client: Redis) -> Iterator[CheckMessage]:
    server = client.info("server")
    is_valkey = "valkey_version" in server
    name = "Valkey" if is_valkey else "Redis"
    version = str(server["valkey_version" if is_valkey else "redis_version"])
    patched = oldest_patched(version, VALKEY_FLOORS if is_valkey else REDIS_FLOORS)
    if patched is not None:
        yield Caution(
            f"{name} {version} has published security faults: a client that may send it commands"
            " can run code on its machine.",
            hint=f"Use {name} {patched} or newer. A distribution may have put the fixes into an"
            " older version: if yours has, add fairshift.W205 to SILENCED_SYSTEM_CHECKS."
            " For first steps it will do.",
            id="fairshift.W205",
        )


def _eviction(client: Redis) -> Iterator[CheckMessage]:
    policy = client.info("memory")["maxmemory_policy"]
    if policy != "noeviction":
        yield Error(
            f"Redis has maxmemory-policy {policy}: when it is full it drops messages and locks.",
            hint="Set maxmemory-policy to noeviction and give caches a Redis of their own.",
            id="fairshift.E203",
        )


def _installation(client: Redis) -> Iterator[CheckMessage]:
    ours = _installation_id()
    if ours is None:
        return
    client.set(installation_key(), ours, nx=True)
    # MGET, which returns None for a key of the wrong type.
    [stored] = client.mget(installation_key())
    found = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored or "")
    if not INSTALLATION.fullmatch(found):
        # It is no installation's name: overwrite it.
        client.set(installation_key(), ours)
    elif found != ours:
        yield Error(
            f"This Redis database belongs to the installation with database {found}, ours is"
            f" {ours}: the workers of both would take each other's messages.",
            hint="Give each installation a Redis, or a database number in CELERY_BROKER_URL"
            " (REDIS_URL in Fairshift's own project). If this"
            f" database replaced the other, delete the key {installation_key()}.",
            id="fairshift.E204",
        )


def _unserved() -> Iterator[CheckMessage]:
    try:
        alive = Worker.objects.alive()
        found = unserved({queue for worker in alive for queue in worker.queues})
    except DatabaseError:
        return
    for queue in (*found.fair, *found.stock):
        yield Caution(
            f"Messages wait in queue {queue!r}, and no worker of Fairshift takes from it.",
            hint=f"Start a worker for it: celery worker --queues {queue}. If another project's"
            " workers take from it, add fairshift.W206 to SILENCED_SYSTEM_CHECKS.",
            id="fairshift.W206",
        )


def _installation_id() -> str | None:
    """Return PostgreSQL's own identity and the database; None if it does not answer."""
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute(
                "SELECT system_identifier || '/' || current_database() FROM pg_control_system()"
            )
            return str(cursor.fetchone()[0])
    except DatabaseError:
        return None


SERVER_LOOKS: Final = (_age, _known_faults, _eviction)
"""Each takes a client of Redis, and yields what is wrong with the server."""
