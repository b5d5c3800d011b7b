"""A calendar as an .ics feed: what calendar programs show of its windows, and how to get at it.

Whoever has the address reads the feed without a login, for calendar programs have none. So it holds
the calendar's name, its windows and freezes with their reasons, and how many runs wait: nothing of
what these runs are.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from itertools import chain
from secrets import token_urlsafe
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from jobs import agreed, database
from jobs.ical.writing import Shown, Status, write
from jobs.models import AuditEntry, Calendar, Decision, Window, WindowEffect
from jobs.windows import Entry, Span, in_words, notes
from jobs.windows.occurrences import FARTHEST, all_occurrences, is_approved

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
    shown = [
        *chain.from_iterable(_occurrences(window, start=start, end=end) for window in windows),
        *_planned(calendar, start=start, end=end),
    ]
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


def _occurrences(window: Window, *, start: datetime, end: datetime) -> Iterator[Shown]:
    entry = agreed.entry_of(window)
    decisions = sorted(window.decisions.all(), key=lambda one: one.pk)
    stamp = max([window.requested_at, *(one.at for one in decisions)])
    is_freeze = window.effect == WindowEffect.FREEZE
    kind = "Freeze" if is_freeze else "Service window"
    words = in_words(entry)
    earliest = start - entry.duration - FARTHEST
    for _, whole in all_occurrences(entry, start=earliest, end=end):
        span = whole.clip(start=entry.valid_from, end=entry.valid_until)
        if span.start >= span.end or span.end <= start or span.start >= end:
            continue
        yield Shown(
            uid=str(_uid(window.calendar, f"{window.pk} {whole.start.isoformat()}")),
            start=span.start,
            end=span.end,
            summary=f"{kind}: {window.reason}" if window.reason else kind,
            description="\n".join(filter(None, (words, notes(entry, span)))),
            category=window.effect,
            stamp=stamp,
            status=_status(entry, whole, [one for one in decisions if _is_on(one, window, whole)]),
            is_busy=is_freeze,
        )


def _is_on(decision: Any, window: Window, whole: Span) -> bool:
    """Say whether a decision is one on an occurrence of the window as it is now."""
    return decision.revision == window.revision and decision.occurrence_at in {None, whole.start}


def _status(entry: Entry, whole: Span, decisions: list[Any]) -> Status:
    if is_approved(entry, whole.start):
        return Status.CONFIRMED
    is_no = bool(decisions) and decisions[-1].decision != Decision.APPROVED
    return Status.CANCELLED if is_no else Status.TENTATIVE


def _planned(calendar: Calendar, *, start: datetime, end: datetime) -> Iterator[Shown]:
    parameters = {"calendar": calendar.pk, "start": start, "end": end}
    for row in database.run("planned_runs", parameters):
        count = row["runs"]
        yield Shown(
            uid=str(_uid(calendar, f"runs {row['opens_at'].isoformat()}")),
            start=row["opens_at"],
            end=row["closes_at"],
            summary=f"{count:,} {'run' if count == 1 else 'runs'} planned",
            description="",
            category="runs",
            stamp=calendar.created_at,
        )


def _uid(calendar: Calendar, name: str) -> UUID:
    """Return the same id each time; another one than in other installations."""
    return uuid5(NAMESPACE_URL, f"fairshift {calendar.created_at.isoformat()} {calendar.pk} {name}")
