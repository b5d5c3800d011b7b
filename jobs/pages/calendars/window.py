"""One window or freeze, and the decisions on it."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse

from jobs.actions import find
from jobs.actions.windows import WINDOWS
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Window
from jobs.pages.calendars.words import state_with_pill, timetable_of
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.visit import Visit, page

DECISIONS: Final = 100


@page("calendars", permission="jobs.view_window")
def window(visit: Visit, key: int) -> HttpResponse:
    """Show one window or freeze."""
    found: Window = find(WINDOWS, key, by=visit.access)
    moment = now()
    # The barrier hides the names of users.
    with barrier.lifted():
        state, sign, tone = state_with_pill(found, now=moment)
        requester = found.requester
        timetable = timetable_of(found, now=moment)
        decisions = list(found.decisions.order_by("-pk")[:DECISIONS])
    return visit.show(
        "jobs/pages/calendars/window.html",
        window=found,
        state=state,
        sign=sign,
        tone=tone,
        requester=requester,
        timetable=timetable,
        decisions=decisions,
        buttons=buttons(visit, WINDOWS, found),
        admin_url=visit.admin_address("window_change", found.pk),
    )
