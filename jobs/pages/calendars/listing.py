"""The list of calendars: open or closed now, what waits for an approval, what they apply to."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from jobs.actions import may_create
from jobs.actions.calendars import CALENDARS
from jobs.actions.filters.calendars import CalendarFilter
from jobs.calendars.reads import status
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Scope
from jobs.models.access import Access
from jobs.pages.calendars.words import applies_to
from jobs.pages.kit.lists import FilterForm, newest_first
from jobs.pages.kit.visit import Visit, page


@page("calendars", permission="jobs.view_calendar")
def calendars(visit: Visit) -> HttpResponse:
    """Show the calendars that a filter finds, the newest first."""
    form = FilterForm(visit, CalendarFilter, of_owner=False)
    found = newest_first(visit, form.narrow(_calendars_of(visit)), of="calendars")
    # These are narrowed already. What they apply to may have names that the barrier hides.
    with barrier.lifted():
        status.complete(found.rows, visit.access, now=now())
    add_url = None
    if may_create(CALENDARS, by=visit.access):
        # The admin's form says what it applies to, too.
        in_admin = visit.admin_address("calendar_add")
        add_url = in_admin or visit.address("create_calendar")
    return visit.show(
        "jobs/pages/calendars/list.html",
        live="jobs/pages/calendars/list_live.html",
        form=form,
        list=found,
        # The admin's columns have the same names.
        lines=[
            (row, row.page_status, row.page_asked, applies_to(*row.page_attached))
            for row in found.rows
        ],
        admin_url=visit.admin_address("calendar_changelist"),
        add_url=add_url,
    )


def _calendars_of(visit: Visit) -> Any:
    """Return the calendars that the visitor sees, with their owners.

    With a chosen owner: those of this owner, and shared ones that apply to something of it.
    """
    access = visit.access
    if visit.owner is not None:
        access = Access(access.actor, by_owner={visit.owner.pk: frozenset({Scope.READ})})
    return CALENDARS.seen_by(access)
