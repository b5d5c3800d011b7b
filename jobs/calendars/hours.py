"""Calendars as they are agreed: from rows to what the arithmetic of windows takes.

Read anew when their version has changed, and kept in this process until then.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from jobs.core import sql
from jobs.core.errors import WindowError
from jobs.models import Calendar, Decision, Window, WindowDecision, WindowEffect
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

# A version that was not committed comes again for another change, but in another transaction.
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
    """Return when these calendars are open, by id; those that are gone are left out."""
    rows = sql.query(_VERSIONS, [sorted(ids)])
    versions = {row["id"]: (row["version"], row["written"]) for row in rows}
    found = {
        one: kept[1]
        for one, version in versions.items()
        if (kept := _cache.get(one)) is not None and kept[0] == version
    }
    changed = versions.keys() - found.keys()
    if changed:
        if len(_cache) + len(changed) > CACHE_LIMIT:
            _cache.clear()
        rows_of = Calendar.objects.filter(id__in=changed).prefetch_related("windows__decisions")
        for calendar in rows_of:
            found[calendar.pk] = read_hours(calendar)
            # What was read may be newer than its version: it is read again then, and never older.
            _cache[calendar.pk] = versions[calendar.pk], found[calendar.pk]
    return found


def read_hours(calendar: Calendar) -> CalendarHours:
    """Return when a calendar is open, from its rows as they are now."""
    return read_with_windows(calendar)[0]


def read_with_windows(calendar: Calendar) -> tuple[CalendarHours, list[Window]]:
    """Do so, and return the windows and freezes beside, in the order of its entries."""
    windows = sorted(calendar.windows.all(), key=lambda window: window.pk)
    entries = tuple(map(safe_entry_of, windows))
    if first_beyond(entries, after=timezone.now()) is not None:
        # Written past every check, or before there was this one. In doubt nothing starts.
        logger.error("calendar %s: more than %s openings in 62 days", calendar.pk, MOST_OPENINGS)
        entries = (_TOO_MANY,) * len(windows)
    return CalendarHours(entries, cut_off=calendar.cut_off), windows


def has_too_many(windows: Iterable[Window], *more: Entry) -> bool:
    """Tell whether these windows of a calendar, and more entries, make more openings than any may.

    A calendar that has too many is closed.
    """
    return first_beyond((*map(safe_entry_of, windows), *more), after=timezone.now()) is not None


def safe_entry_of(window: Window) -> Entry:
    """Return a window or freeze; in the place of one that was broken by raw SQL, a freeze."""
    try:
        entry = entry_of(window)
        checked(replace(entry, approved=None))
        return entry
    except (WindowError, ValueError, TypeError):
        # In doubt nothing starts; and what is of other calendars goes on.
        logger.exception("window %s of calendar %s", window.pk, window.calendar_id)
        return _CLOSED


def entry_of(window: Window) -> Entry:
    """Return a window or freeze as the arithmetic takes it, with what was decided on it."""
    needs_approval = window.calendar.needs_approval and window.effect == WindowEffect.WINDOW
    decisions = sorted(window.decisions.all(), key=lambda one: one.pk) if needs_approval else ()
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
        approved=approved_spans(_decision_facts(window, decisions)) if needs_approval else None,
        reason=window.reason,
    )


def _decision_facts(window: Window, decisions: Iterable[WindowDecision]) -> Iterable[DecisionFact]:
    # What was decided on the window as it was before its last change says nothing of it now.
    return (
        DecisionFact(
            decision.decision == Decision.APPROVED,
            occurrence_at=decision.occurrence_at,
            expires_at=decision.expires_at,
        )
        for decision in decisions
        if decision.revision == window.revision
    )
