"""When a calendar is open next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from jobs.actions.texts import Moment
from jobs.api.calendars.reading import READS, find_calendar
from jobs.api.calendars.router import router
from jobs.calendars.reads.next_openings import next_openings
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.windows import Span

FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = datetime(2098, 1, 1, tzinfo=UTC)
COUNT_LIMIT: Final = 100


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

    @classmethod
    def of(cls, span: Span) -> OpeningSpan:
        return cls(opens_at=span.start, closes_at=span.end)


class NextOpenings(Schema):
    """The next openings, up to a year ahead. The first one may have begun."""

    items: list[OpeningSpan]


@router.get(
    "/{int:calendar_id}/openings", auth=READS, response=NextOpenings, operation_id="get_openings"
)
def get_openings(request: HttpRequest, calendar_id: int, query: Openings) -> NextOpenings:
    """Return the next openings of a calendar."""
    calendar = find_calendar(request, calendar_id)
    found = next_openings(calendar, after=query.start, count=query.count)
    return NextOpenings(items=[OpeningSpan(**one._asdict()) for one in found])
