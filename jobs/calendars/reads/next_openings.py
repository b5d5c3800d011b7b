"""The next openings of a calendar."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from jobs.calendars.hours import read_hours
from jobs.core import sql
from jobs.models import Calendar
from jobs.windows import open_spans

# A calendar with many openings is not expanded for a year.
_LOOKS: Final = (timedelta(days=2), timedelta(days=62), timedelta(days=366))


class NextOpening(NamedTuple):
    """A span in which a calendar is open; `closes_at` None: not within a year."""

    opens_at: datetime
    closes_at: datetime | None


def planned_runs(
    calendar: Calendar, *, start: datetime, end: datetime, owners: Collection[int] | None
) -> list[dict[str, Any]]:
    """Return `opens_at`, `closes_at` and `runs` of the openings in a span that held runs wait for.

    Runs of these owners are counted; None: of all.
    """
    keys = None if owners is None else sorted(owners)
    given = {"calendar": calendar.pk, "start": start, "end": end, "owners": keys}
    return sql.run("calendars/planned_runs", given)


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
