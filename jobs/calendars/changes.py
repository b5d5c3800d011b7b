"""Changes of calendars, of their windows, and of what they apply to.

Each verb is one transaction, which also recomputes the openings that admission reads: every
admission after its commit sees the change. The caller waits for no run: the next promotion, within
a second, gates waiting runs again and stops active ones (`jobs/runs/gate.py`). It also recomputes
openings after other changes, which triggers note (0005_calendar_changes.sql).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, Min

from jobs.calendars import hours
from jobs.core import sql
from jobs.core.apart import leaving_out
from jobs.core.errors import OptionError, WindowError
from jobs.core.sql import now
from jobs.models import (
    Attachment,
    AuditEntry,
    Calendar,
    Job,
    Opening,
    Owner,
    Target,
    TargetGroup,
    WindowEffect,
)
from jobs.models.verbs import Actor
from jobs.windows import MOST_OPENINGS, open_spans

AHEAD: Final = timedelta(days=62)
"""How far ahead the table has openings; they are recomputed when half of that is left."""
BEHIND: Final = timedelta(days=1)

logger = logging.getLogger(__name__)

_open: ContextVar[Mapping[int, Calendar]] = ContextVar("open", default=MappingProxyType({}))

_KINDS: Final[dict[type[Any], str]] = {
    Owner: "owner_id",
    Job: "job_id",
    Target: "target_id",
    TargetGroup: "group_id",
}
_OWNERS: Final = """
SELECT DISTINCT coalesce(a.owner_id, j.owner_id, t.owner_id, g.owner_id) AS id
FROM jobs_attachment AS a
LEFT JOIN jobs_job AS j ON j.id = a.job_id
LEFT JOIN jobs_target AS t ON t.id = a.target_id
LEFT JOIN jobs_targetgroup AS g ON g.id = a.group_id
WHERE a.calendar_id = %s
"""
_STALE: Final = "SELECT id FROM jobs_calendar WHERE is_stale ORDER BY id"
_MADE: Final = "UPDATE jobs_calendar SET computed_until = %s, is_stale = false WHERE id = %s"
# Exclusive, and in one order: see lock_limits.sql.
_ALONE: Final = """
SELECT pg_advisory_xact_lock(1722, key) FROM (
    SELECT DISTINCT hashtext(slug) AS key FROM jobs_owner WHERE id = ANY(%s) ORDER BY key
) AS owners
"""


@contextmanager
def changing(calendar: Calendar) -> Iterator[Calendar]:
    """Change a calendar's rows, or those of its windows, in this block; see the module.

    Yields the calendar as it is now, locked; the caller saves it. A block inside another one of the
    same calendar is a part of that. Raises OptionError if no window would be left, as the calendar
    would then be always open, and WindowError for too many openings; nothing is changed then.
    """
    if (open_one := _open.get().get(calendar.pk)) is not None:
        yield open_one
        return
    with transaction.atomic():
        locked = _locked(calendar)
        # Before the block too: hours read in it must not be cached under the old version.
        _renew(locked)
        had_windows = _has_windows(locked)
        had_too_many = _has_too_many(locked)
        token = _open.set({**_open.get(), locked.pk: locked})
        try:
            yield locked
        finally:
            _open.reset(token)
        if had_windows and not _has_windows(locked):
            raise OptionError(
                "window",
                f"is the last one of calendar {locked.name!r}, which would always be open without"
                " it: ask for another one first, or detach or delete the calendar",
            )
        # A calendar that had too many before is closed, and may be changed to have fewer.
        if not had_too_many and _has_too_many(locked):
            raise too_many_openings(locked)
        owner_ids = [row["id"] for row in sql.query(_OWNERS, [locked.pk])]
        _lock_owners(owner_ids)
        _renew(locked)
        make_openings(Calendar.objects.get(pk=locked.pk))
        _mark_changed(owner_ids)


def too_many_openings(calendar: Calendar) -> WindowError:
    return WindowError(
        "rule",
        f"would give calendar {calendar.name!r} more than {MOST_OPENINGS:,} openings in 62 days, "
        "which is the limit; let it come less often",
    )


def attach(
    calendar: Calendar, to: Owner | Job | Target | TargetGroup, *, actor: Actor = None
) -> Attachment:
    """Have a calendar apply to an owner, a job, a target or a group, if it does not yet.

    An actor is audited. Raises OptionError for another owner's calendar, and when `to` is none of
    these.
    """
    if not isinstance(to, tuple(_KINDS)):
        names = ", ".join(kind.__name__ for kind in _KINDS)
        raise OptionError("to", f"is one of {names}, and not {to!r:.80}")
    owner = to if isinstance(to, Owner) else to.owner
    if calendar.owner_id not in {None, owner.pk}:
        raise OptionError("calendar", f"{calendar.name!r} is not one of {owner.slug}'s")
    with transaction.atomic():
        locked = _locked(calendar)
        _lock_owners([owner.pk])
        if locked.computed_until is None:
            # It has no openings before its first change, and would be closed.
            make_openings(locked)
        key: dict[str, Any] = {_KINDS[kind]: to.pk for kind in _KINDS if isinstance(to, kind)}
        made, is_new = Attachment.objects.get_or_create(calendar=calendar, **key)
        if is_new and actor is not None:
            AuditEntry.write("attach calendar", on=locked, actor=actor, to=_named(to))
    return made


def detach(attachment: Attachment, *, actor: Actor = None, reason: str = "") -> None:
    """Delete an attachment: the calendar no longer applies there. An actor is audited."""
    owner = attachment.owner_of_it
    with transaction.atomic():
        _lock_owners([owner.pk])
        if actor is not None:
            to = _named(attachment.to)
            calendar = attachment.calendar
            AuditEntry.write("detach calendar", on=calendar, actor=actor, reason=reason, to=to)
        attachment.delete()


@contextmanager
def changing_group(group: TargetGroup) -> Iterator[TargetGroup]:
    """Change the targets of a group, or delete it, in this block."""
    with transaction.atomic():
        locked = TargetGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
        _lock_owners([locked.owner_id])
        yield locked
        _mark_changed([locked.owner_id])


def delete(calendar: Calendar, *, actor: Actor = None, reason: str = "") -> None:
    """Delete a calendar with its windows; what it applied to is open unless others close it.

    An actor is audited.
    """
    with transaction.atomic():
        locked = _locked(calendar)
        if actor is not None:
            AuditEntry.write(
                "delete calendar", on=locked, actor=actor, reason=reason, name=locked.name
            )
        owner_ids = [row["id"] for row in sql.query(_OWNERS, [calendar.pk])]
        _lock_owners(owner_ids)
        calendar.delete()


def make_openings(calendar: Calendar) -> int:
    """Write the openings of a calendar for the coming weeks; return how many there are.

    The last one ends with these weeks when the calendar is open then.
    """
    moment = now()
    until = moment + AHEAD
    spans = open_spans([hours.read_hours(calendar)], start=moment - BEHIND, end=until)
    Opening.objects.filter(calendar=calendar).delete()
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY jobs_opening (calendar_id, opens_at, closes_at) FROM STDIN") as copy,
    ):
        for span in spans:
            copy.write_row((calendar.pk, span.start, span.end))
    sql.query(_MADE, [until, calendar.pk])
    return len(spans)


def renew_stale() -> int:
    """Recompute openings of calendars that changed outside of `changing`; return how many.

    The triggers of 0005_calendar_changes.sql note these calendars, and nothing starts in them until
    this is done.
    """
    stale = [row["id"] for row in sql.query(_STALE)]
    for calendar in Calendar.objects.filter(id__in=stale).order_by("pk"):
        # It may be deleted by now.
        with _apart(calendar), suppress(Calendar.DoesNotExist), changing(calendar):
            pass
    return len(stale)


def extend_openings() -> int:
    """Recompute openings of calendars that have them for less than half of `AHEAD`."""
    soon = now() + AHEAD / 2
    known = Calendar.objects.filter(computed_until__lt=soon).order_by("pk")
    for calendar in known:
        with _apart(calendar), transaction.atomic():
            make_openings(_locked(calendar))
    return len(known)


def _apart(calendar: Calendar) -> AbstractContextManager[None]:
    return leaving_out(f"calendar {calendar.pk}", logger)


def known_until() -> datetime | None:
    """Return until when all attached calendars have openings; None without such a calendar."""
    known = Calendar.objects.filter(attachments__isnull=False)
    until: datetime | None = known.aggregate(until=Min("computed_until"))["until"]
    return until


def _named(to: Owner | Job | Target | TargetGroup) -> str:
    """Return what a calendar applies to, for the audit."""
    return f"{to._meta.model_name} {to}"


def _locked(calendar: Calendar) -> Calendar:
    """Return a calendar as it is now, locked. Lock it before its owners, to avoid deadlocks.

    Rows that refer to it can be added meanwhile.
    """
    return Calendar.objects.select_for_update(no_key=True).get(pk=calendar.pk)


def _renew(calendar: Calendar) -> None:
    """Give a locked calendar a new version, so that processes ignore what they cached of it."""
    calendar.version += 1
    Calendar.objects.filter(pk=calendar.pk).update(version=calendar.version)


def _has_windows(calendar: Calendar) -> bool:
    return calendar.windows.filter(effect=WindowEffect.WINDOW).exists()


def _has_too_many(calendar: Calendar) -> bool:
    return hours.has_too_many(hours.windows_of(calendar))


def _lock_owners(owner_ids: Collection[int]) -> None:
    sql.query(_ALONE, [sorted(owner_ids)])


def _mark_changed(owner_ids: Collection[int]) -> None:
    """Have the next promotion gate these owners' waiting runs again, and stop active ones."""
    Owner.objects.filter(pk__in=owner_ids).update(calendar_version=F("calendar_version") + 1)
