"""Find calendars for a caller: those of its owners, and shared ones that apply to these."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from jobs.api.kit.callers import caller
from jobs.api.kit.etags import etag_of
from jobs.api.kit.problems import first_of
from jobs.calendars import visibility
from jobs.calendars.options import shown
from jobs.models import Calendar
from jobs.models.access import Access


def visible_calendars(access: Access) -> Any:
    """Return the calendars that a caller sees, with their owners."""
    return visibility.visible_rows(Calendar.objects.select_related("owner"), access)


def find_calendar(request: HttpRequest, calendar_id: int) -> Calendar:
    """Return a calendar that the caller sees; raise Problem if there is none."""
    found: Calendar = first_of(visible_calendars(caller(request)).filter(pk=calendar_id))
    return found


def etag_of_calendar(calendar: Calendar) -> str:
    """Return the ETag of a calendar's options."""
    return etag_of(calendar.pk, sorted(shown(calendar).items()))
