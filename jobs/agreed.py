"""Calendars as they are agreed: from rows to what the arithmetic of windows takes.

Read anew when their version has changed, and kept in this process until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from jobs.models import Calendar, Decision, Window, WindowDecision, WindowEffect
from jobs.windows import Calendar as Hours
from jobs.windows import Effect, Entry, Said, agreed

MOST_KEPT: Final = 10_000
_kept: dict[int, tuple[int, Hours]] = {}


def hours(ids: Collection[int]) -> dict[int, Hours]:
    """Return when these calendars are open, by id; those that are gone are left out."""
    versions = dict(Calendar.objects.filter(id__in=ids).values_list("id", "version"))
    changed = [
        one
        for one, version in versions.items()
        if (kept := _kept.get(one)) is None or kept[0] != version
    ]
    if changed:
        if len(_kept) + len(changed) > MOST_KEPT:
            _kept.clear()
            changed = list(versions)
        for calendar in Calendar.objects.filter(id__in=changed).prefetch_related(
            "windows__decisions"
        ):
            _kept[calendar.pk] = calendar.version, read(calendar)
    return {one: _kept[one][1] for one in versions if one in _kept}


def read(calendar: Calendar) -> Hours:
    """Return when a calendar is open, from its rows as they are now."""
    windows = sorted(calendar.windows.all(), key=lambda window: window.pk)
    return Hours(tuple(map(entry_of, windows)), cut_off=calendar.cut_off)


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
        approved=agreed(_said(window, decisions)) if needs_approval else None,
        reason=window.reason,
    )


def _said(window: Window, decisions: Iterable[WindowDecision]) -> Iterable[Said]:
    # What was decided on the window as it was before its last change says nothing of it now.
    return (
        Said(
            decision.decision == Decision.APPROVED,
            occurrence_at=decision.occurrence_at,
            expires_at=decision.expires_at,
        )
        for decision in decisions
        if decision.revision == window.revision
    )
