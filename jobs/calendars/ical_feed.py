"""A calendar as an .ics feed for calendar programs, and the secret in the feed's address.

These programs cannot log in: the address is enough to read the feed. So it holds only the name, the
windows and freezes with their reasons, and the number of waiting runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from django.urls import NoReverseMatch, reverse

from fleet import counted
from jobs.calendars import hours
from jobs.calendars.changes import AHEAD
from jobs.calendars.ical.writing import FeedEntry, Status, write
from jobs.calendars.reads.next_openings import planned_runs
from jobs.calendars.reads.occurrence_list import Counted, overlapping
from jobs.calendars.visibility import visible_rows
from jobs.core.errors import ActionRefused
from jobs.core.sql import now
from jobs.models import (
    ApiToken,
    AuditEntry,
    Calendar,
    Decision,
    Window,
    WindowDecision,
    WindowEffect,
)
from jobs.models.access import access_of
from jobs.windows import Entry, in_words, notes

BEHIND: Final = timedelta(days=7)
MOST: Final = 2_000
"""Entries in a feed, the first ones: programs read all of it, every few minutes."""
MOUNT: Final = 'path("fairshift/", include("jobs.urls"))'
"""The line of a project's urls.py without which feeds have no address."""


def recent_feed(calendar: Calendar, *, owners: Collection[int] | None) -> bytes:
    """Return the feed of the last week and the coming weeks.

    It begins and ends with a day, so that it stays the same between polls.
    """
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    return feed(calendar, start=today - BEHIND, end=today + AHEAD, owners=owners)


def feed(
    calendar: Calendar,
    *,
    start: datetime,
    end: datetime,
    owners: Collection[int] | None = None,
) -> bytes:
    """Return what overlaps this span as an iCalendar file; runs of these owners are counted.

    Each occurrence is an entry of its own, in UTC, with notes on clock changes. Windows without an
    approval are tentative, rejected ones cancelled. Each opening has the number of its held runs.
    """
    windows = hours.windows_of(calendar)
    if hours.has_too_many(windows):
        # The calendar is closed, and to sort all these would take minutes.
        windows = windows.none()
    entries = ((window, hours.entry_of(window)) for window in windows)
    found = [
        (one, window, entry)
        for window, entry in entries
        for one in overlapping(entry, start=start, end=end)
    ]
    found.sort(key=lambda each: each[0].span.start)
    # Cut first: describing them takes longer than finding them.
    shown = [_shown(*each) for each in found[:MOST]]
    shown += _planned(calendar, start=start, end=end, owners=owners)
    shown.sort(key=lambda one: (one.start, one.uid))
    return write(shown[:MOST], name=calendar.name)


def new_secret(calendar: Calendar, *, actor: Any = None, reason: str = "") -> str:
    """Replace the secret in the address of a feed; return it. Only its hash is stored.

    From then on the feed shows what the user who made the address may see. Raises ActionRefused for
    a token.
    """
    if isinstance(actor, ApiToken):
        raise ActionRefused(
            "A feed shows what a user may see: log in to make its address.", "needs_user"
        )
    secret = token_urlsafe(32)
    Calendar.objects.filter(pk=calendar.pk).update(
        feed_hash=_hash(secret), feed_by=actor, feed_has_maker=actor is not None
    )
    AuditEntry.write("publish calendar", on=calendar, actor=actor, reason=reason)
    return secret


def forget_secret(calendar: Calendar, *, actor: Any = None, reason: str = "") -> None:
    """Remove the address of a feed, if it has one."""
    if Calendar.objects.filter(pk=calendar.pk, feed_hash__isnull=False).update(feed_hash=None):
        AuditEntry.write("unpublish calendar", on=calendar, actor=actor, reason=reason)


def calendar_of(secret: str) -> Calendar | None:
    """Return the calendar whose feed has this secret, if the maker of the address sees it now."""
    found = Calendar.objects.select_related("feed_by").filter(feed_hash=_hash(secret)).first()
    return None if found is None or is_stopped(found) else found


def is_stopped(calendar: Calendar) -> bool:
    """Say whether a feed shows nothing, as the maker of its address may not see the calendar."""
    if calendar.feed_hash is None or not calendar.feed_has_maker:
        return False
    maker = calendar.feed_by
    if maker is None or not access_of(maker).permits("jobs.view_calendar"):
        return True
    return not visible_rows(Calendar.objects.filter(pk=calendar.pk), maker).exists()


def counted_owners(calendar: Calendar) -> frozenset[int] | None:
    """Return the owners whose runs a feed counts: those that its maker sees; None: all."""
    if not calendar.feed_has_maker:
        return None
    access = access_of(calendar.feed_by)
    if not access.permits("jobs.view_run"):
        return frozenset()
    return None if access.sees_all else access.owner_ids()


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def _shown(one: Counted, window: Window, entry: Entry) -> FeedEntry:
    """Return the entry of an occurrence in the feed."""
    decisions = sorted(window.decisions.all(), key=lambda each: each.pk)
    is_freeze = window.effect == WindowEffect.FREEZE
    kind = "Freeze" if is_freeze else "Service window"
    return FeedEntry(
        uid=str(_uid(window.calendar, f"{window.pk} {one.start.isoformat()}")),
        start=one.span.start,
        end=one.span.end,
        summary=f"{kind}: {window.reason}" if window.reason else kind,
        description="\n".join(filter(None, (in_words(entry), notes(entry, one.span)))),
        category=window.effect,
        stamp=max([window.requested_at, *(each.at for each in decisions)]),
        status=Status.CONFIRMED if one.counts else _status(window, decisions, one.start),
        is_busy=is_freeze,
    )


def _status(window: Window, decisions: Sequence[WindowDecision], start: datetime) -> Status:
    found = [
        each.decision
        for each in decisions
        if each.revision == window.revision and each.occurrence_at in {None, start}
    ]
    is_refused = bool(found) and found[-1] != Decision.APPROVED
    return Status.CANCELLED if is_refused else Status.TENTATIVE


def _planned(
    calendar: Calendar, *, start: datetime, end: datetime, owners: Collection[int] | None
) -> Iterator[FeedEntry]:
    for row in planned_runs(calendar, start=start, end=end, owners=owners):
        yield FeedEntry(
            uid=str(_uid(calendar, f"runs {row['opens_at'].isoformat()}")),
            start=row["opens_at"],
            end=row["closes_at"],
            summary=f"{counted(row['runs'], 'run')} planned",
            description="",
            category="runs",
            stamp=calendar.created_at,
        )


def _uid(calendar: Calendar, name: str) -> UUID:
    """Return an id for a name: always the same one, and another one in other installations."""
    return uuid5(NAMESPACE_URL, f"fairshift {calendar.created_at.isoformat()} {calendar.pk} {name}")


def feed_path(secret: str) -> str | None:
    """Return the path of a feed; None in a project that has not mounted `jobs.urls`."""
    try:
        return reverse("jobs:calendar_feed", args=[secret])
    except NoReverseMatch:
        return None
