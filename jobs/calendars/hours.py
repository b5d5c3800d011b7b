"""The hours of calendars, read from rows, and cached until the calendar's version changes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet
from django.utils import timezone

from jobs.core import log_events, sql
from jobs.core.errors import WindowError
from jobs.models import Calendar, Decision, Window, WindowEffect
from jobs.windows import (
    MOST_OPENINGS,
    CalendarHours,
    DecisionFact,
    Effect,
    Entry,
    approved_spans,
    checked,
    first_beyond,
)

logger = logging.getLogger(__name__)

CACHE_LIMIT: Final = 10_000
Version = tuple[int, str]
_cache: dict[int, tuple[Version, CalendarHours]] = {}

# A version that was rolled back is used again, by another transaction: so xmin is compared too.
_VERSIONS: Final = """
SELECT id, version, xmin::text AS written FROM jobs_calendar WHERE id = ANY(%s)
"""
_CLOSED: Final = Entry(
    Effect.FREEZE,
    starts=datetime(1970, 1, 1),  # noqa: DTZ001  by the clock of its zone
    duration=timedelta(days=1),
    zone="UTC",
    rule="FREQ=DAILY",
    reason="a window of this calendar cannot be read",
)
_TOO_MANY: Final = replace(_CLOSED, reason="this calendar has too many openings")


def hours_of(ids: Collection[int]) -> dict[int, CalendarHours]:
    """Return the hours of these calendars by id, without those that were deleted."""
    rows = sql.query(_VERSIONS, [sorted(ids)])
    versions = {row["id"]: (row["version"], row["written"]) for row in rows}
    found = {
        one: cached[1]
        for one, version in versions.items()
        if (cached := _cache.get(one)) is not None and cached[0] == version
    }
    changed = versions.keys() - found.keys()
    if changed:
        if len(_cache) + len(changed) > CACHE_LIMIT:
            _cache.clear()
        calendars = Calendar.objects.filter(id__in=changed).prefetch_related("windows__decisions")
        for calendar in calendars:
            found[calendar.pk] = read_hours(calendar)
            # The hours may be newer than the version: then they are read once more, never stale.
            _cache[calendar.pk] = versions[calendar.pk], found[calendar.pk]
    return found


def read_hours(calendar: Calendar) -> CalendarHours:
    """Return the hours of a calendar, from its rows as they are now."""
    return read_with_windows(calendar)[0]


def read_with_windows(calendar: Calendar) -> tuple[CalendarHours, list[Window]]:
    """Return the hours of a calendar, and its windows and freezes in the order of the entries."""
    windows = sorted(calendar.windows.all(), key=lambda window: window.pk)
    entries = tuple(map(safe_entry_of, windows))
    if first_beyond(entries, after=timezone.now()) is not None:
        # The rows were written without our checks. In doubt nothing starts.
        log_events.CALENDAR_TOO_LARGE.log(logger, calendar=calendar.pk, most=MOST_OPENINGS)
        entries = (_TOO_MANY,) * len(windows)
    return CalendarHours(entries, cut_off=calendar.cut_off), windows


def windows_of(calendar: Calendar) -> QuerySet[Window]:
    """Return a calendar's windows and freezes with what `entry_of` reads."""
    return calendar.windows.select_related("calendar").prefetch_related("decisions")


def has_too_many(windows: Iterable[Window], *more: Entry) -> bool:
    """Say whether a calendar with these windows and entries is closed, for too many openings."""
    return first_beyond((*map(safe_entry_of, windows), *more), after=timezone.now()) is not None


def safe_entry_of(window: Window) -> Entry:
    """Return a window or freeze as an entry; a permanent freeze if raw SQL has broken it."""
    try:
        entry = entry_of(window)
        checked(replace(entry, approved=None))
        return entry
    except (WindowError, ValueError, TypeError):
        # In doubt nothing starts. Other calendars are not affected.
        facts = {"window": window.pk, "calendar": window.calendar_id}
        log_events.WINDOW_BROKEN.log(logger, exc_info=True, **facts)
        return _CLOSED


def entry_of(window: Window) -> Entry:
    """Return a window or freeze as an entry, with the decisions on it."""
    approved = None
    if window.calendar.needs_approval and window.effect == WindowEffect.WINDOW:
        decisions = sorted(window.decisions.all(), key=lambda one: one.pk)
        # Decisions on earlier revisions of the window do not count.
        approved = approved_spans(
            DecisionFact(
                decision.decision == Decision.APPROVED,
                occurrence_at=decision.occurrence_at,
                expires_at=decision.expires_at,
            )
            for decision in decisions
            if decision.revision == window.revision
        )
    return Entry(
        Effect(window.effect),
        starts=datetime.fromisoformat(window.starts),
        duration=timedelta(seconds=window.duration_seconds),
        zone=window.zone,
        rule=window.rule,
        excluded=tuple(map(datetime.fromisoformat, window.excluded)),
        added=tuple(map(datetime.fromisoformat, window.added)),
        valid_from=window.valid_from,
        valid_until=window.valid_until,
        approved=approved,
        reason=window.reason,
    )
