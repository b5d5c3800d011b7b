"""A month as data: of one calendar here; of all calendars of an owner in `jobs/api/owners`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from itertools import chain, islice
from typing import Annotated, Any, Final

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from jobs.actions.texts import Text
from jobs.api.calendars.openings import OpeningSpan
from jobs.api.calendars.reading import READS, find_calendar
from jobs.api.calendars.router import router
from jobs.api.kit.callers import caller
from jobs.calendars.reads import month_layout
from jobs.calendars.reads.month import Content, content_of, occurrences_of, opened, planned
from jobs.calendars.reads.occurrence_list import Counted
from jobs.core import barrier
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.core.zones import zone_problem
from jobs.models import Calendar, Owner, Window, WindowEffect
from jobs.models.access import Access
from jobs.windows import Span

OCCURRENCES_LIMIT: Final = 20_000
"""More than a single calendar can have."""
MONTH: Final = r"^(19[7-9]\d|20\d\d)-(0[1-9]|1[0-2])$"

ZoneName = Annotated[Text, Field(max_length=64, description="An IANA time zone.")]


class MonthQuery(Schema):
    """The month, and the zone whose clock it follows."""

    month: Annotated[Text, Field(pattern=MONTH)] | None = Field(
        None, description="Such as 2026-11; by default this month."
    )
    zone: ZoneName = Field("", description="An IANA time zone; by default the owner's.")

    def refuse_wrong_zone(self) -> None:
        """Raise OptionError if there is no such zone."""
        if problem := zone_problem(self.zone):
            raise OptionError("zone", problem)

    def first_day(self, zone: str) -> date:
        """Return the first day of the month; raise OptionError if it is out of range."""
        today = month_layout.shown_at(now(), zone).date()
        first = month_layout.month_of(self.month or "", today=today)
        if self.month not in {None, f"{first:%Y-%m}"}:
            raise OptionError("month", "is outside 1970-02 to 2099-10")
        return first


class MonthOccurrence(Schema):
    """An occurrence of a window or freeze."""

    window: int
    effect: WindowEffect
    starts_at: datetime
    ends_at: datetime
    occurrence_at: datetime = Field(description="The start by which a decision names it.")
    counts: bool = Field(description="It is approved, or needs no approval.")
    reason: str

    @classmethod
    def of(cls, window: Window, one: Counted) -> MonthOccurrence:
        return cls(
            window=window.pk,
            effect=WindowEffect(window.effect),
            starts_at=one.span.start,
            ends_at=one.span.end,
            occurrence_at=one.start,
            counts=one.counts,
            reason=window.reason,
        )


class PlannedDay(Schema):
    """The number of runs that are planned for a day, by the clock of the zone."""

    day: date
    runs: int

    @classmethod
    def of(cls, day: date, runs: int) -> PlannedDay:
        return cls(day=day, runs=runs)


class MonthFacts(Schema):
    """A month, from the Monday of its first week to the Sunday of its last."""

    month: str
    zone: str
    starts_at: datetime
    ends_at: datetime
    planned: list[PlannedDay] | None = Field(description="Null: counting took too long.")
    problems: list[str] = Field(description="Windows that are missing, and why; mostly empty.")


class MonthOfCalendar(MonthFacts):
    """A month of a calendar, from the Monday of its first week to the Sunday of its last."""

    openings: list[OpeningSpan]
    occurrences: list[MonthOccurrence]


@router.get(
    "/{int:calendar_id}/month", auth=READS, response=MonthOfCalendar, operation_id="get_month"
)
def get_month(
    request: HttpRequest, calendar_id: int, query: Annotated[MonthQuery, Query()]
) -> MonthOfCalendar:
    """Return a month: when it is open, each window and freeze, and how many runs are planned."""
    calendar = find_calendar(request, calendar_id)
    query.refuse_wrong_zone()
    # Names of users, which the barrier hides, are loaded with windows.
    with barrier.lifted():
        problems: list[str] = []
        content, whole, facts = month_facts(calendar, query, caller(request), problems)
        every = occurrences(content.calendars, whole, problems)
        found = [MonthOccurrence.of(*one) for one in islice(every, OCCURRENCES_LIMIT)]
    return MonthOfCalendar(
        **facts,
        occurrences=sorted(found, key=lambda one: (one.starts_at, one.window)),
        problems=list(dict.fromkeys(problems)),
    )


def month_facts(
    subject: Calendar | Owner, query: MonthQuery, access: Access, problems: list[str]
) -> tuple[Content, Span, dict[str, Any]]:
    """Return what a month is of, its span, and the fields that each answer about a month has.

    Adds to `problems` what is missing in them. The caller has lifted the barrier.
    """
    content = content_of(subject, access, zone=query.zone)
    first = query.first_day(content.zone)
    whole = month_layout.range_of(first, content.zone)
    days = planned(content, whole)
    facts = {
        "month": f"{first:%Y-%m}",
        "zone": content.zone,
        "starts_at": whole.start,
        "ends_at": whole.end,
        "openings": [OpeningSpan.of(span) for span in opened(content, whole, problems)],
        "planned": None if days is None else [PlannedDay.of(*day) for day in sorted(days.items())],
    }
    return content, whole, facts


def occurrences(
    calendars: Iterable[Calendar], whole: Span, problems: list[str]
) -> Iterator[tuple[Window, Counted]]:
    """Yield the occurrences of calendars that overlap a span, one calendar after the other."""
    return chain.from_iterable(occurrences_of(one, whole, problems) for one in calendars)
