"""The examination: parts side by side, each in a thread, and all of them within a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags
from django.core.checks import Warning as Caution
from django.core.checks.registry import registry
from django.db import DatabaseError

from jobs.checks import broker as broker_checks
from jobs.checks import database as database_checks
from jobs.core.conf import unknown_settings, wrong_settings
from jobs.management.deadline import Call
from jobs.management.doctor import broker, disk, postgres, running

DEADLINE_SECONDS: Final = 3.5
"""For all parts together. With Python's start, the command ends within 5 s."""
UNREACHABLE: Final = ("fairshift.E102", "fairshift.E201")
ASKS_A_SERVER: Final = (broker_checks.check_broker, database_checks.check_deployed_database)
"""System checks that are made in parts of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found, the worst first, in how many checks and seconds."""

    messages: Sequence[CheckMessage]
    check_count: int
    seconds: float

    @property
    def broken(self) -> list[CheckMessage]:
        return [one for one in self.messages if one.level >= checks.ERROR]

    @property
    def warnings(self) -> list[CheckMessage]:
        return [one for one in self.messages if checks.WARNING <= one.level < checks.ERROR]


@dataclass(slots=True)
class _Part:
    """What one thread finds; it stays if the thread is late."""

    run: Callable[[_Part], None]
    late: Callable[[str], CheckMessage] | None
    """Makes the message of a part that is late, of a reason; None: another part has one."""
    messages: list[CheckMessage] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Names of the checks that were made."""

    def add(self, look: Callable[[], Iterable[CheckMessage]], name: str = "") -> None:
        """Make a check; one that fails is reported, and is no reason to leave the others out."""
        self.made.append(name or look.__name__)
        try:
            for message in look():
                self.messages.append(message)
        except Exception as error:
            self.messages.append(_failed(self.made[-1], error))


def examine() -> Diagnosis:
    """Look at the settings, the servers, what runs, and this machine."""
    began_at = time.monotonic()
    parts = [
        _Part(_look_at_settings, late=_late_settings),
        _Part(_look_at_postgres, late=database_checks.unreachable),
        _Part(_look_at_redis, late=broker_checks.unreachable),
        _Part(_look_at_both, late=None),
    ]
    calls = [(part, Call(partial(part.run, part))) for part in parts]
    found: list[CheckMessage] = []
    for part, call in calls:
        # With a server away, the part that needs both is not waited for.
        is_vain = part.late is None and any(one.id in UNREACHABLE for one in found)
        try:
            call.answer(until=0.0 if is_vain else began_at + DEADLINE_SECONDS)
        except TimeoutError:
            if part.late is not None:
                found.append(part.late(f"not within {DEADLINE_SECONDS:g} s"))
        found += part.messages
    return Diagnosis(
        messages=sorted(_shown(found), key=lambda one: (-one.level, one.id or "")),
        check_count=sum(len(part.made) for part in parts),
        seconds=time.monotonic() - began_at,
    )


def _shown(found: Iterable[CheckMessage]) -> Iterator[CheckMessage]:
    """Yield each message once, without those that the project silences."""
    seen = set()
    for message in found:
        key = message.id, message.msg
        if key not in seen and not message.is_silenced():
            seen.add(key)
            yield message


def _look_at_settings(part: _Part) -> None:
    for check in registry.get_checks(include_deployment_checks=True):
        if check not in ASKS_A_SERVER and Tags.database not in check.tags:
            made: Any = check  # django-stubs do not know that it can be called
            part.add(partial(made, app_configs=None, databases=None), name=made.__name__)
    part.add(disk.folders)


def _look_at_postgres(part: _Part) -> None:
    part.add(postgres.reach)
    if _has("fairshift.E102", part):
        return
    part.add(postgres.checked)
    # With wrong settings, or without tables, the rest cannot be read.
    is_readable = not unknown_settings() and not wrong_settings() and settings.USE_TZ
    if is_readable and not _has("fairshift.E101 fairshift.E102 fairshift.E105", part):
        for look in (*postgres.ROWS, *running.LOOKS):
            part.add(look)


def _look_at_redis(part: _Part) -> None:
    part.messages.extend(broker.examined(part.made.append))


def _look_at_both(part: _Part) -> None:
    # It waits for PostgreSQL as well, and must not hide how Redis is.
    part.add(installation)


def installation() -> Iterable[CheckMessage]:
    """Report a Redis of another installation; nothing if a server does not answer."""
    return broker_checks.installation_problems(current_app._get_current_object())


def _has(ids: str, part: _Part) -> bool:
    return any(message.id in ids.split() for message in part.messages)


def _late_settings(reason: str) -> CheckMessage:
    return Caution(
        f"The system checks have not ended: {reason}.",
        hint="Run manage.py check --deploy alone: does a check of yours wait for a server?",
        id="fairshift.D001",
    )


def _failed(name: str, error: Exception) -> CheckMessage:
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, DatabaseError):
        return database_checks.unreachable(reason)
    return Error(
        f"The check {name} failed: {type(error).__name__}: {reason}",
        hint="See what it says; if it is none of yours, report it.",
        id="fairshift.D002",
    )
