"""Find calendars for a caller: those of its owners, and shared ones that apply to these."""

from __future__ import annotations

from django.http import HttpRequest

from jobs.actions import find
from jobs.actions.calendars import CALENDARS
from jobs.api.kit.callers import caller
from jobs.api.kit.etags import etag_of
from jobs.calendars.options import shown
from jobs.models import Calendar


def find_calendar(request: HttpRequest, calendar_id: int) -> Calendar:
    """Return a calendar that the caller sees; raise NotFound if there is none."""
    found: Calendar = find(CALENDARS, calendar_id, by=caller(request))
    return found


def etag_of_calendar(calendar: Calendar) -> str:
    """Return the ETag of a calendar's options."""
    return etag_of(calendar.pk, sorted(shown(calendar).items()))
