"""A calendar as an .ics feed: what calendar programs show of its windows, and how to get at it.

Whoever has the address reads the feed without a login, for calendar programs have none. So it holds
the calendar's name, its windows and freezes with their reasons, and how many runs wait: nothing of
what these runs are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import chain
from secrets import token_urlsafe
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from jobs.calendars import hours
from jobs.calendars.ical.writing import Shown, Status, write
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
    if hours.has_too_many(windows):
        # The calendar is closed, and putting these into order would take minutes.
        windows = windows.none()
    found = sorted(
        chain.from_iterable(_occurrences(window, start=start, end=end) for window in windows),
        key=lambda one: one.span.start,
    )
    # Cut before they are put into words, which takes longer than to find them.
    shown = [one.shown() for one in found[:MOST]]
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


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """One occurrence of a window: what is valid of it, and as its rule has it."""

    window: Window
    entry: Entry
    span: Span
    whole: Span

    def shown(self) -> Shown:
        """Say it to a reader."""
        window, entry = self.window, self.entry
        decisions = sorted(window.decisions.all(), key=lambda one: one.pk)
        is_freeze = window.effect == WindowEffect.FREEZE
        kind = "Freeze" if is_freeze else "Service window"
        return Shown(
            uid=str(_uid(window.calendar, f"{window.pk} {self.whole.start.isoformat()}")),
            start=self.span.start,
            end=self.span.end,
            summary=f"{kind}: {window.reason}" if window.reason else kind,
            description="\n".join(filter(None, (in_words(entry), notes(entry, self.span)))),
            category=window.effect,
            stamp=max([window.requested_at, *(one.at for one in decisions)]),
            status=self._status(decisions),
            is_busy=is_freeze,
        )

    def _status(self, decisions: Sequence[WindowDecision]) -> Status:
        if is_approved(self.entry, self.whole.start):
            return Status.CONFIRMED
        of_it = [
            one.decision
            for one in decisions
            if one.revision == self.window.revision
            and one.occurrence_at in {None, self.whole.start}
        ]
        is_no = bool(of_it) and of_it[-1] != Decision.APPROVED
        return Status.CANCELLED if is_no else Status.TENTATIVE


def _occurrences(window: Window, *, start: datetime, end: datetime) -> Iterator[_Occurrence]:
    entry = hours.entry_of(window)
    earliest = start - entry.duration - FARTHEST
    for _, whole in all_occurrences(entry, start=earliest, end=end):
        span = whole.clip(start=entry.valid_from, end=entry.valid_until)
        if start < span.end and span.start < min(span.end, end):
            yield _Occurrence(window, entry, span, whole)


def _planned(calendar: Calendar, *, start: datetime, end: datetime) -> Iterator[Shown]:
    parameters = {"calendar": calendar.pk, "start": start, "end": end}
    for row in sql.run("calendars/planned_runs", parameters):
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
