"""One day of a calendar: each window and freeze of it, however many there are."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from django.http import HttpResponse

from jobs.actions import find
from jobs.actions.calendars import CALENDARS
from jobs.calendars.reads import month_layout
from jobs.calendars.reads.month import content_of, view_of_day
from jobs.core import barrier
from jobs.models import Calendar
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.visit import Visit, page

SHOWN: Final = 200
"""Occurrences on one page."""


@page("calendars", permission="jobs.view_calendar")
def calendar_day(visit: Visit, key: int, day: str) -> HttpResponse:
    """Show one day of a calendar, such as 2026-11-25, by the clock of its zone."""
    found: Calendar = find(CALENDARS, key, by=visit.access)
    asked = month_layout.day_of(day)
    if asked is None:
        raise not_found()
    with barrier.lifted():
        content = content_of(found, visit.access, zone=visit.request.GET.get("zone", ""))
        view = view_of_day(content, asked)
    start = 0
    with suppress(ValueError):
        start = max(0, int(visit.request.GET.get("start", "0")))
    count = len(view.pieces)
    return visit.show(
        "jobs/pages/calendars/day.html",
        calendar=found,
        view=view,
        count=count,
        pieces=view.pieces[start : start + SHOWN],
        opened=view.open_spans[:SHOWN],
        open_count=len(view.open_spans),
        first=start + 1,
        last=min(count, start + SHOWN),
        following=start + SHOWN if start + SHOWN < count else None,
        preceding=max(0, start - SHOWN) if start else None,
    )
