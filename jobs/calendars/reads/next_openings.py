"""The next openings of a calendar."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from jobs.calendars.hours import read_hours
from jobs.models import Calendar
from jobs.windows import open_spans

# A calendar with many openings is not expanded for a year.
_LOOKS: Final = (timedelta(days=2), timedelta(days=62), timedelta(days=366))


class NextOpening(NamedTuple):
    """A span in which a calendar is open; `closes_at` None: not within a year."""

    opens_at: datetime
    closes_at: datetime | None


def next_openings(calendar: Calendar, *, after: datetime, count: int) -> list[NextOpening]:
    """Return the first openings after a moment, up to a year ahead; the first may be open then."""
    hours = read_hours(calendar)
    spans, end = [], after
    for ahead in _LOOKS:
        end = after + ahead
        spans = open_spans([hours], start=after, end=end)[: count + 1]
        if len(spans) > count:
            break
    return [
        NextOpening(span.start, None if span.end == end else span.end) for span in spans[:count]
    ]
