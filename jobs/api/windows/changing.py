"""Windows and freezes: requested, changed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from jobs.actions import refuse_without_scope
from jobs.api.calendars.reading import find_calendar
from jobs.api.calendars.router import router as calendars
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import IF_MATCH, refuse_stale
from jobs.api.windows.reading import described, etag_of_window, find_window
from jobs.api.windows.router import router
from jobs.api.windows.schemas import WindowChange, WindowDetails, WindowToRequest, fields_of
from jobs.calendars import windows
from jobs.calendars.changes import changing
from jobs.core import barrier
from jobs.models import Scope, Window

REQUESTS = needs(Scope.ADMIN, "jobs.add_window")
CHANGES = needs(Scope.ADMIN, "jobs.change_window")


@calendars.post(
    "/{int:calendar_id}/windows",
    auth=REQUESTS,
    response={201: WindowDetails},
    operation_id="request_window",
    tags=["windows"],
)
def request_window(
    request: HttpRequest, response: HttpResponse, calendar_id: int, body: WindowToRequest
) -> WindowDetails:
    """Add a window or freeze to a calendar. A freeze counts at once."""
    calendar = find_calendar(request, calendar_id)
    refuse_without_scope(caller(request), Scope.ADMIN, calendar.owner_id)
    with barrier.lifted():
        made = windows.request_window(calendar, actor=caller(request).actor, **fields_of(body))
        root = request.path.removesuffix(f"calendars/{calendar_id}/windows")
        response["Location"] = f"{root}windows/{made.pk}"
        response["ETag"] = etag_of_window(Window.objects.get(pk=made.pk))
        return described([made.pk])[0]


@router.patch(
    "/{int:window_id}",
    auth=CHANGES,
    response=WindowDetails,
    operation_id="change_window",
    openapi_extra=IF_MATCH,
)
def change_window(
    request: HttpRequest, response: HttpResponse, window_id: int, body: WindowChange
) -> WindowDetails:
    """Change fields of a window or freeze. `If-Match` is needed.

    A change that only narrows an approved window keeps its approval; any other one asks again.
    """
    window = find_window(request, window_id)
    refuse_without_scope(caller(request), Scope.ADMIN, window.calendar.owner_id)
    with barrier.lifted(), changing(window.calendar):
        locked = Window.objects.filter(pk=window.pk).first()
        refuse_stale(request, etag_of_window(locked) if locked is not None else "")
        changed = windows.change_window(window, actor=caller(request).actor, **fields_of(body))
        response["ETag"] = etag_of_window(changed)
        return described([changed.pk])[0]
