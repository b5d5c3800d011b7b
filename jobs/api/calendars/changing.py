"""Calendars: create, change, delete."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from jobs.actions.calendars import CALENDARS
from jobs.api.calendars.finding import etag_of_calendar, find_calendar
from jobs.api.calendars.router import router
from jobs.api.calendars.schemas import CalendarChange, CalendarDetails, CalendarToCreate
from jobs.api.kit.actions import GONE, serve
from jobs.api.kit.callers import caller, needs, refuse_other_scope, refuse_without
from jobs.api.kit.etags import IF_MATCH, refuse_stale
from jobs.api.kit.owning import owner_of_request
from jobs.calendars import changes
from jobs.calendars.options import change_calendar as change
from jobs.calendars.options import create_calendar as create
from jobs.core import barrier
from jobs.models import Owner, Scope
from jobs.models.access import Access

CREATES = needs(Scope.ADMIN, "jobs.add_calendar")
CHANGES = needs(Scope.ADMIN, "jobs.change_calendar")


@router.post("", auth=CREATES, response={201: CalendarDetails}, operation_id="create_calendar")
def create_calendar(
    request: HttpRequest, response: HttpResponse, body: CalendarToCreate
) -> CalendarDetails:
    """Make a calendar. It applies to nothing until it is attached."""
    access = caller(request)
    owner = _owner(access, body)
    options = body.model_dump(exclude={"owner", "is_shared", "name"})
    with barrier.lifted():
        if owner is not None:
            owner.refresh_from_db()
        made = create(body.name, owner=owner, actor=access.actor, **options)
        response["Location"] = f"{request.path}/{made.pk}"
        response["ETag"] = etag_of_calendar(made)
        return CalendarDetails.of(made)


@router.patch(
    "/{int:calendar_id}",
    auth=CHANGES,
    response=CalendarDetails,
    operation_id="change_calendar",
    openapi_extra=IF_MATCH,
)
def change_calendar(
    request: HttpRequest, response: HttpResponse, calendar_id: int, body: CalendarChange
) -> CalendarDetails:
    """Change options of a calendar. `If-Match` is needed."""
    calendar = find_calendar(request, calendar_id)
    refuse_other_scope(request, Scope.ADMIN, calendar.owner_id)
    options = body.model_dump(exclude_unset=True)
    with barrier.lifted(), changes.changing(calendar) as locked:
        refuse_stale(request, etag_of_calendar(locked), is_required=True)
        changed = change(locked, actor=caller(request).actor, **options)
        response["ETag"] = etag_of_calendar(changed)
        return CalendarDetails.of(changed)


serve(
    router,
    CALENDARS,
    "{int:calendar_id}",
    GONE,
    etag_of=lambda calendar, _request: etag_of_calendar(calendar),
)


def _owner(access: Access, body: CalendarToCreate) -> Owner | None:
    if not body.is_shared:
        return owner_of_request(access, body.owner, Scope.ADMIN)
    refuse_without(access, Scope.ADMIN, None)
    return None
