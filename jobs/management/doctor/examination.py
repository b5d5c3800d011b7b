"""The examination: parts side by side, each in a thread, and all of them within a deadline."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags
from django.core.checks import Warning as Caution
from django.core.checks.registry import registry

from fleet import counted
from jobs.checks import broker as broker_checks
from jobs.checks import database as database_checks
from jobs.core.conf import unknown_settings, wrong_settings
from jobs.management.deadline import begin
from jobs.management.doctor import broker, disk, postgres, running
from jobs.management.doctor.part import Part, bound, named

UNREACHABLE: Final = ("fairshift.E102", "fairshift.E201", "fairshift.E206")
ASKS_A_SERVER: Final = (broker_checks.check_broker, database_checks.check_deployed_database)
"""System checks that are made in parts of their own."""
OURS: Final = ("django.", "jobs.", "fleet.")
"""Modules whose checks are made before those of the project, which may wait for anything."""
NAMED: Final = 5


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


def examine(*, seconds: float) -> Diagnosis:
    """Look at the settings, the servers, what runs, and this machine, within so many seconds."""
    began_at = time.monotonic()
    parts = [
        Part(partial(_look_at_postgres, seconds), database_checks.unreachable),
        Part(partial(_look_at_redis, seconds), broker_checks.unreachable),
        Part(_look_at_settings),
        Part(_look_at_both),
    ]
    found: list[CheckMessage] = []
    unmade: list[Sequence[str]] = []
    for part, call in [(part, begin(part)) for part in parts]:
        is_away = _has(UNREACHABLE, found)
        # With a server away, the part that needs both is not waited for.
        is_vain = is_away and part.run is _look_at_both
        try:
            call.result(0.0 if is_vain else max(0.0, began_at + seconds - time.monotonic()))
        except TimeoutError:
            if part.unreachable is not None and not part.is_reached:
                found.append(part.unreachable(f"not within {seconds:g} s"))
            elif not is_vain:
                unmade.append(part.unmade)
        else:
            unmade.append(part.unmade)
        found += part.messages
    is_away = _has(UNREACHABLE, found)
    found += [one for part in parts for one in part.failures(is_server_away=is_away)]
    # The first one of each part is what it waits for.
    names = [name for part in unmade for name in part[:1]]
    names += [name for part in unmade for name in part[1:]]
    if names:
        found.append(_not_examined(names, seconds))
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


def _look_at_settings(part: Part) -> None:
    made: list[Any] = [
        check
        for check in registry.get_checks(include_deployment_checks=True)
        if check not in ASKS_A_SERVER and Tags.database not in check.tags
    ]
    made.sort(key=lambda check: not check.__module__.startswith(OURS))
    part.make(
        [
            *named([disk.folders]),
            *((one.__name__, partial(one, app_configs=None, databases=None)) for one in made),
        ]
    )


def _look_at_postgres(seconds: float, part: Part) -> None:
    parameters = postgres.reach(seconds)
    part.is_reached = True
    part.make(
        [
            bound(postgres.pooling, parameters, seconds),
            ("check_deployed_database", postgres.checked),
        ]
    )
    # With wrong settings, or without tables, the rest cannot be read.
    is_readable = not unknown_settings() and not wrong_settings() and settings.USE_TZ
    unreadable = ("fairshift.E101", "fairshift.E102", "fairshift.E105")
    if is_readable and not _has(unreadable, part.messages):
        part.make(named([*postgres.ROWS, *running.LOOKS]))
    if part.has_lost_a_server:
        postgres.reach(seconds)


def _look_at_redis(seconds: float, part: Part) -> None:
    with broker.reached(seconds) as client:
        part.is_reached = True
        part.make(broker.looks(client))
    if part.has_lost_a_server:
        with broker.reached(seconds):
            pass


def _look_at_both(part: Part) -> None:
    # It waits for PostgreSQL as well, and must not hide how Redis is.
    part.make(named([installation]))


def installation() -> Iterable[CheckMessage]:
    """Report a Redis of another installation; nothing if a server does not answer."""
    return broker_checks.installation_problems(current_app._get_current_object())


def _has(ids: Iterable[str], messages: Iterable[CheckMessage]) -> bool:
    return not {message.id for message in messages}.isdisjoint(ids)


def _not_examined(names: Sequence[str], seconds: float) -> CheckMessage:
    more = f" and {counted(len(names) - NAMED, 'more check')}" if len(names) > NAMED else ""
    return Caution(
        f"Not examined within {seconds:g} s: {', '.join(names[:NAMED])}{more}.",
        hint="A busy machine needs longer: give more seconds with --timeout. If it is the same"
        " check each time: does a check of yours wait for a server?",
        id="fairshift.D001",
    )
