"""When a calendar is open: its next openings, and a month of it as data."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import islice
from typing import Annotated, Final

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from jobs.api.calendars.finding import find_calendar
from jobs.api.calendars.reading import READS
from jobs.api.calendars.router import router
from jobs.api.kit.callers import caller
from jobs.api.kit.texts import Moment, Text
from jobs.calendars.reads import month_layout
from jobs.calendars.reads.month import occurrences_of, opened, planned, scope_of
from jobs.calendars.reads.next_openings import next_openings
from jobs.core import barrier
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.core.zones import zone_problem
from jobs.models import WindowEffect
from jobs.windows import Span

FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = datetime(2098, 1, 1, tzinfo=UTC)
COUNT_LIMIT: Final = 100
OCCURRENCES_LIMIT: Final = 20_000
MONTH: Final = r"^(19[7-9]\d|20\d\d)-(0[1-9]|1[0-2])$"

ZoneName = Annotated[Text, Field(max_length=64, description="An IANA time zone.")]


class OpeningQuery(Schema):
    """The start and the number of openings."""

    after: Moment | None = Field(None, description="From 1970 to 2097; by default now.")
    count: int = Field(10, ge=1, le=COUNT_LIMIT)

    @property
    def start(self) -> datetime:
        """The moment of the first opening; raises OptionError outside 1970 to 2097."""
        if self.after is not None and not FIRST <= self.after < LAST:
            raise OptionError("after", "is outside 1970 to 2097")
        return self.after or now()


Openings = Annotated[OpeningQuery, Query()]


class OpeningSpan(Schema):
    """A span in which a calendar is open. Its cut-off is a part of it."""

    opens_at: datetime
    closes_at: datetime | None = Field(description="Null: it does not close within a year.")


class NextOpenings(Schema):
    """The next openings, up to a year ahead. The first one may have begun."""

    items: list[OpeningSpan]


class MonthQuery(Schema):
    """The month, and the zone whose clock it follows."""

    month: Annotated[Text, Field(pattern=MONTH)] | None = Field(
        None, description="Such as 2026-11; by default this month."
    )
    zone: ZoneName = Field("", description="An IANA time zone; by default the owner's.")


class MonthOccurrence(Schema):
    """An occurrence of a window or freeze."""

    window: int
    effect: WindowEffect
    starts_at: datetime
    ends_at: datetime
    occurrence_at: datetime = Field(description="The start by which a decision names it.")
    counts: bool = Field(description="It is approved, or needs no approval.")
    reason: str


class PlannedDay(Schema):
    """The number of runs that are planned for a day, by the clock of the zone."""

    day: date
    runs: int


class MonthOfCalendar(Schema):
    """A month of a calendar, from the Monday of its first week to the Sunday of its last."""

    month: str
    zone: str
    starts_at: datetime
    ends_at: datetime
    openings: list[OpeningSpan]
    occurrences: list[MonthOccurrence]
    planned: list[PlannedDay] | None = Field(description="Null: counting took too long.")
    problems: list[str] = Field(description="The windows that are missing, and why.")


@router.get(
    "/{int:calendar_id}/openings", auth=READS, response=NextOpenings, operation_id="get_openings"
)
def get_openings(request: HttpRequest, calendar_id: int, query: Openings) -> NextOpenings:
    """Return the next openings of a calendar."""
    calendar = find_calendar(request, calendar_id)
    found = next_openings(calendar, after=query.start, count=query.count)
    return NextOpenings(items=[OpeningSpan(**one._asdict()) for one in found])


@router.get(
    "/{int:calendar_id}/month", auth=READS, response=MonthOfCalendar, operation_id="get_month"
)
def get_month(
    request: HttpRequest, calendar_id: int, query: Annotated[MonthQuery, Query()]
) -> MonthOfCalendar:
    """Return a month: when it is open, each window and freeze, and how many runs are planned."""
    calendar = find_calendar(request, calendar_id)
    if problem := zone_problem(query.zone):
        raise OptionError("zone", problem)
    # Names of users, which the barrier hides, are loaded with windows.
    with barrier.lifted():
        scope = scope_of(calendar, caller(request), zone=query.zone)
        today = month_layout.shown_at(now(), scope.zone).date()
        first = month_layout.month_of(query.month or "", today=today)
        if query.month not in {None, f"{first:%Y-%m}"}:
            raise OptionError("month", "is outside 1970-02 to 2099-10")
        whole = month_layout.range_of(first, scope.zone)
        problems: list[str] = []
        spans = opened(scope, whole, problems)
        every = (each for one in scope.calendars for each in occurrences_of(one, whole, problems))
        occurrences = [
            MonthOccurrence(
                window=window.pk,
                effect=WindowEffect(window.effect),
                starts_at=one.span.start,
                ends_at=one.span.end,
                occurrence_at=one.start,
                counts=one.counts,
                reason=window.reason,
            )
            for window, one in islice(every, OCCURRENCES_LIMIT)
        ]
        days = planned(scope, whole)
    return MonthOfCalendar(
        month=f"{first:%Y-%m}",
        zone=scope.zone,
        starts_at=whole.start,
        ends_at=whole.end,
        openings=[_span(span) for span in spans],
        occurrences=sorted(occurrences, key=lambda one: (one.starts_at, one.window)),
        planned=None
        if days is None
        else [PlannedDay(day=day, runs=runs) for day, runs in sorted(days.items())],
        problems=list(dict.fromkeys(problems)),
    )


def _span(span: Span) -> OpeningSpan:
    return OpeningSpan(opens_at=span.start, closes_at=span.end)
