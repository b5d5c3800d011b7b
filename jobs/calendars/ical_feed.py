"""A calendar as an .ics feed: what calendar programs show of its windows, and how to get at it.

Whoever has the address reads the feed without a login, for calendar programs have none. So it holds
the calendar's name, its windows and freezes with their reasons, and how many runs wait: nothing of
what these runs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from fleet import counted
from jobs.calendars import hours
from jobs.calendars.ical.writing import Shown, Status, write
from jobs.calendars.reads.occurrence_list import overlapping
from jobs.core import sql
from jobs.models import (
    AuditEntry,
    Calendar,
    Decision,
    Window,
    WindowDecision,
    WindowEffect,
)
from jobs.windows import Entry, Span, in_words, notes
from jobs.windows.occurrences import is_approved

MOST: Final = 2_000
"""So many entries a feed has, the first ones: programs read it whole, every few minutes."""
SECRET_BYTES: Final = 32


def feed(calendar: Calendar, *, start: datetime, end: datetime) -> bytes:
    """Return what overlaps this span as an iCalendar file.

    Occurrences one by one, in UTC, with what changed clocks do to them; windows that nobody has
    agreed to are tentative, rejected ones cancelled. Runs that are held stand at their openings,
    as a number.
    """
    windows = calendar.windows.prefetch_related("decisions").select_related("calendar")
    if hours.has_too_many(windows):
        # The calendar is closed, and putting these into order would take minutes.
        windows = windows.none()
    entries = ((window, hours.entry_of(window)) for window in windows)
    found = [
        (span, at, window, entry)
        for window, entry in entries
        for span, at in overlapping(entry, start=start, end=end)
    ]
    found.sort(key=lambda each: each[0].start)
    # Cut before they are put into words, which takes longer than to find them.
    shown = [_shown(*each) for each in found[:MOST]]
    shown += _planned(calendar, start=start, end=end)
    shown.sort(key=lambda one: (one.start, one.uid))
    return write(shown[:MOST], name=calendar.name)


def new_secret(calendar: Calendar, *, actor: Any = None) -> str:
    """Return a new secret for the address of a feed; the one before is of no use any more.

    Only its hash is kept: it is shown this once.
    """
    secret = token_urlsafe(SECRET_BYTES)
    Calendar.objects.filter(pk=calendar.pk).update(feed_hash=_hash(secret))
    AuditEntry.write("new feed address", on=calendar, actor=actor)
    return secret


def forget_secret(calendar: Calendar, *, actor: Any = None) -> None:
    """Have the feed at no address; harmless when it is at none."""
    if Calendar.objects.filter(pk=calendar.pk, feed_hash__isnull=False).update(feed_hash=None):
        AuditEntry.write("no feed address", on=calendar, actor=actor)


def calendar_of(secret: str) -> Calendar | None:
    """Return the calendar whose feed has this secret."""
    return Calendar.objects.filter(feed_hash=_hash(secret)).first()


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def _shown(span: Span, at: datetime, window: Window, entry: Entry) -> Shown:
    """Return an occurrence of a window, of which `span` is valid, as a reader sees it."""
    decisions = sorted(window.decisions.all(), key=lambda each: each.pk)
    is_freeze = window.effect == WindowEffect.FREEZE
    kind = "Freeze" if is_freeze else "Service window"
    return Shown(
        uid=str(_uid(window.calendar, f"{window.pk} {at.isoformat()}")),
        start=span.start,
        end=span.end,
        summary=f"{kind}: {window.reason}" if window.reason else kind,
        description="\n".join(filter(None, (in_words(entry), notes(entry, span)))),
        category=window.effect,
        stamp=max([window.requested_at, *(each.at for each in decisions)]),
        status=Status.CONFIRMED if is_approved(entry, at) else _status(window, decisions, at),
        is_busy=is_freeze,
    )


def _status(window: Window, decisions: Sequence[WindowDecision], start: datetime) -> Status:
    """Return the status of an occurrence that is not approved."""
    of_it = [
        each.decision
        for each in decisions
        if each.revision == window.revision and each.occurrence_at in {None, start}
    ]
    is_no = bool(of_it) and of_it[-1] != Decision.APPROVED
    return Status.CANCELLED if is_no else Status.TENTATIVE


def _planned(calendar: Calendar, *, start: datetime, end: datetime) -> Iterator[Shown]:
    parameters = {"calendar": calendar.pk, "start": start, "end": end}
    for row in sql.run("calendars/planned_runs", parameters):
        yield Shown(
            uid=str(_uid(calendar, f"runs {row['opens_at'].isoformat()}")),
            start=row["opens_at"],
            end=row["closes_at"],
            summary=f"{counted(row['runs'], 'run')} planned",
            description="",
            category="runs",
            stamp=calendar.created_at,
        )


def _uid(calendar: Calendar, name: str) -> UUID:
    """Return the same id each time; another one than in other installations."""
    return uuid5(NAMESPACE_URL, f"fairshift {calendar.created_at.isoformat()} {calendar.pk} {name}")
