"""A month of an owner: the windows, freezes and approvals of all its calendars."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Final

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from jobs.api.calendars.months import (
    MonthFacts,
    MonthOccurrence,
    MonthQuery,
    month_facts,
    occurrences,
)
from jobs.api.calendars.openings import OpeningSpan
from jobs.api.kit.callers import caller, needs
from jobs.api.owners.reading import find_owner
from jobs.api.owners.router import router
from jobs.calendars import visibility
from jobs.calendars.reads.occurrence_list import Counted
from jobs.calendars.reads.window_state import Approval, approval_of
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Calendar, Owner, Scope, Window
from jobs.models.access import Access

READS = needs(Scope.READ, "jobs.view_calendar")
CALENDARS_LIMIT: Final = 100
OCCURRENCES_LIMIT: Final = 5_000
_WITH: Final = ("windows__decisions", "windows__requested_by", "windows__requested_by_token")


class CalendarOfMonth(Schema):
    """A calendar of the owner, or a shared one that applies to something of the owner."""

    id: int
    name: str
    is_shared: bool


class OwnerOccurrence(MonthOccurrence):
    """An occurrence of a window or freeze of one of the calendars."""

    calendar: int
    approval: Approval = Field(description="The approval of the window as a whole.")


class MonthOfOwner(MonthFacts):
    """A month of an owner, from the Monday of its first week to the Sunday of its last."""

    calendars: list[CalendarOfMonth] = Field(
        description=f"By name; at most {CALENDARS_LIMIT} of them."
    )
    openings: list[OpeningSpan] = Field(
        description="When the calendars that apply to the whole owner are open."
    )
    occurrences: list[OwnerOccurrence] = Field(
        description=f"At most {OCCURRENCES_LIMIT:,}, of the first calendars."
    )


@router.get("/{slug}/month", auth=READS, response=MonthOfOwner, operation_id="get_owner_month")
def get_owner_month(
    request: HttpRequest, slug: str, query: Annotated[MonthQuery, Query()]
) -> MonthOfOwner:
    """Return a month of all calendars of an owner: each window and freeze, with its approval.

    For more calendars or occurrences than this answer has, ask for a month of one calendar.
    """
    owner = find_owner(caller(request), slug)
    query.refuse_wrong_zone()
    keys = _calendars_of(owner)
    # Names of users, which the barrier hides, are loaded with windows.
    with barrier.lifted():
        problems: list[str] = []
        if len(keys) > CALENDARS_LIMIT:
            problems.append(f"More than {CALENDARS_LIMIT} calendars: the last by name are missing.")
        _content, whole, facts = month_facts(owner, query, caller(request), problems)
        rows = Calendar.objects.filter(pk__in=keys[:CALENDARS_LIMIT]).prefetch_related(*_WITH)
        calendars = list(rows)
        found = list(islice(occurrences(calendars, whole, problems), OCCURRENCES_LIMIT + 1))
        if len(found) > OCCURRENCES_LIMIT:
            problems.append(
                f"More than {OCCURRENCES_LIMIT:,} occurrences: those of the last calendars are"
                " missing."
            )
        shown = _shown(found[:OCCURRENCES_LIMIT])
    return MonthOfOwner(
        **facts,
        calendars=[
            CalendarOfMonth(id=one.pk, name=one.name, is_shared=one.owner_id is None)
            for one in calendars
        ],
        occurrences=sorted(shown, key=lambda one: (one.starts_at, one.window)),
        problems=list(dict.fromkeys(problems)),
    )


def _calendars_of(owner: Owner) -> list[int]:
    """Return the ids of an owner's calendars, and of shared ones that apply to it, by name."""
    only = Access(owner, by_owner={owner.pk: frozenset({Scope.READ})})
    rows: Any = visibility.visible_rows(Calendar.objects.order_by("name", "pk"), only)
    return list(rows.values_list("pk", flat=True)[: CALENDARS_LIMIT + 1])


def _shown(found: list[tuple[Window, Counted]]) -> list[OwnerOccurrence]:
    moment = now()
    windows = {window.pk: window for window, _ in found}
    approvals = {key: approval_of(window, now=moment) for key, window in windows.items()}
    return [
        OwnerOccurrence(
            **MonthOccurrence.of(window, one).model_dump(),
            calendar=window.calendar_id,
            approval=approvals[window.pk],
        )
        for window, one in found
    ]
