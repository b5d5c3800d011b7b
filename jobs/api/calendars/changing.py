"""Calendars: create, and the actions on them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from jobs.actions import Done
from jobs.actions.calendars import CALENDARS
from jobs.api.calendars.reading import etag_of_calendar
from jobs.api.calendars.router import router
from jobs.api.calendars.schemas import CalendarDetails, Feed
from jobs.api.kit.actions import Answer, serve, serve_creation
from jobs.core import barrier


def _shown(_request: HttpRequest, response: HttpResponse, done: Done) -> CalendarDetails:
    with barrier.lifted():
        done.row.refresh_from_db()
        response["ETag"] = etag_of_calendar(done.row)
        return CalendarDetails.of(done.row)


def _published(request: HttpRequest, response: HttpResponse, done: Done) -> Feed:
    response["Cache-Control"] = "no-store"
    return Feed(address=request.build_absolute_uri(done.value))


ANSWER = Answer(schema=CalendarDetails, of=_shown)
serve_creation(router, CALENDARS, ANSWER)
serve(
    router,
    CALENDARS,
    "{int:calendar_id}",
    ANSWER,
    etag_of=lambda calendar, _request: etag_of_calendar(calendar),
    answers={"publish": Answer(schema=Feed, of=_published)},
)
