"""Will it fit: the next openings of a calendar, and how the runs that wait for it will go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.utils.translation import gettext as _

from jobs.actions import find
from jobs.actions.calendars import CALENDARS
from jobs.calendars.changes import AHEAD
from jobs.calendars.reads.month import content_of
from jobs.calendars.reads.next_openings import next_openings, planned_runs
from jobs.core import barrier
from jobs.core.language import number
from jobs.core.sql import now
from jobs.forecast.estimate import Forecast
from jobs.forecast.of_calendar import fits, waiting_for
from jobs.models import Calendar
from jobs.pages.kit.visit import Visit, page
from jobs.pages.submissions.submit import may_submit

OPENINGS: Final = 10


@page("calendars", permission="jobs.view_calendar")
def calendar_fit(visit: Visit, key: int) -> HttpResponse:
    """Show whether the runs that wait for a calendar will fit into its windows."""
    found: Calendar = find(CALENDARS, key, by=visit.access)
    with barrier.lifted():
        openings, problem = _openings(visit, found)
        # The condition is only that of runs which the visitor sees.
        waiting = waiting_for(content_of(found, visit.access).runs)
    return visit.show(
        "jobs/pages/calendars/fit.html",
        calendar=found,
        openings=openings,
        problem=problem,
        is_counted=waiting is not None,
        waiting=[(each, *_verdict(each.forecast)) for each in waiting or ()],
        forecast_url=visit.address("submit") if may_submit(visit.access) else None,
    )


def _openings(visit: Visit, found: Calendar) -> tuple[list[tuple[Any, timedelta | None, int]], str]:
    """Return the next openings, how long each is, and how many runs wait for it."""
    moment = now()
    owners = None if visit.access.sees_all else visit.access.owner_ids()
    planned = planned_runs(found, start=moment, end=moment + AHEAD, owners=owners)
    counts = {row["closes_at"]: row["runs"] for row in planned}
    try:
        spans = next_openings(found, after=moment, count=OPENINGS)
    # Rows may be written by raw SQL.
    except Exception as error:
        return [], str(error)
    return [
        (one, one.closes_at - one.opens_at if one.closes_at else None, counts.get(one.closes_at, 0))
        for one in spans
    ], ""


def _verdict(found: Forecast | None) -> tuple[str, str, str]:
    """Return in words, with a sign and a tone, whether the runs of a forecast fit."""
    if found is None:
        return _("not known: the forecast takes too long"), "?", "idle"
    if fits(found):
        return _("they fit"), "✓", "good"
    if found.never:
        return _("%s never start") % number(found.never), "✕", "bad"
    if found.expired:
        return _("%s expire before they start") % number(found.expired), "✕", "bad"
    if found.left_over and found.next_opening:
        return _("%s are left over for the next window") % number(found.left_over), "▲", "warn"
    return _("no end is known for all of them"), "✕", "bad"
