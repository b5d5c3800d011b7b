"""Calendars: list and get."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from jobs.actions import find
from jobs.actions.calendars import CALENDARS
from jobs.actions.filters.calendars import CalendarFilter
from jobs.api.calendars.router import router
from jobs.api.calendars.schemas import CalendarDetails
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.calendars.options import shown
from jobs.models import Calendar, Scope

READS = needs(Scope.READ, "jobs.view_calendar")


@router.get("", auth=READS, response=PageOf[CalendarDetails], operation_id="list_calendars")
def list_calendars(
    request: HttpRequest, filters: Query[CalendarFilter], page: Page
) -> PageOf[CalendarDetails]:
    """Return calendars, newest first: yours, and shared ones that apply to something of yours."""
    access = caller(request)
    rows = filters.narrow(CALENDARS.seen_by(access), access=access)
    return newest_first(request, page, rows, CalendarDetails.of, of="calendars", filters=filters)


@router.get("/{int:calendar_id}", auth=READS, response=CalendarDetails, operation_id="get_calendar")
def get_calendar(request: HttpRequest, response: HttpResponse, calendar_id: int) -> Any:
    """Return one calendar. Its ETag changes with its options."""
    calendar = find_calendar(request, calendar_id)
    etag = etag_of_calendar(calendar)
    return unchanged(request, response, etag) or CalendarDetails.of(calendar)


def find_calendar(request: HttpRequest, calendar_id: int) -> Calendar:
    """Return a calendar that the caller sees; raise NotFound if there is none."""
    found: Calendar = find(CALENDARS, calendar_id, by=caller(request))
    return found


def etag_of_calendar(calendar: Calendar) -> str:
    """Return the ETag of a calendar's options."""
    return etag_of(calendar.pk, sorted(shown(calendar).items()))
