"""jobs/calendars/reads/month_layout.py: a month in weeks, by the clock of a zone."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest

from jobs.calendars.reads import month_layout
from jobs.calendars.reads.month_layout import Day, Mark
from jobs.windows import Span

NOVEMBER = date(2026, 11, 1)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def span(start: str, end: str) -> Span:
    return Span(*(datetime.fromisoformat(f"{at}+00:00") for at in (start, end)))


def days(
    *marks: Span,
    month: date = NOVEMBER,
    zone: str = "UTC",
    opened: tuple[Span, ...] = (),
    planned: Mapping[date, int] | None = None,
) -> dict[date, Day]:
    """Return the days of a month with marks that are told by their numbers."""
    weeks = month_layout.month(
        month,
        zone=zone,
        marks=[Mark(one, told) for told, one in enumerate(marks)],
        open_spans=opened,
        now=NOW,
        planned=planned or {},
    )
    assert all(len(week) == 7 for week in weeks)
    return {day.day: day for week in weeks for day in week}


def pieces(day: Day) -> list[tuple[str, Any]]:
    return [(piece.hours, piece.text) for piece in day.pieces]


def test_a_span_over_midnight_stands_in_both_days() -> None:
    """With its hours of each, the earlier one first; what touches midnight is not in the next."""
    found = days(
        span("2026-11-03T22:00", "2026-11-04T04:00"), span("2026-11-04T01:00", "2026-11-05T00:00")
    )
    assert pieces(found[date(2026, 11, 3)]) == [("22:00–24:00", 0)]
    assert pieces(found[date(2026, 11, 4)]) == [("00:00–04:00", 0), ("01:00–24:00", 1)]
    assert pieces(found[date(2026, 11, 5)]) == []


def test_days_are_those_of_the_zone_and_as_long_as_its_clock_makes_them() -> None:
    """A day of 25 hours is drawn over all of them."""
    found = days(
        span("2026-10-24T22:00", "2026-10-25T23:00"),
        month=date(2026, 10, 1),
        zone="Europe/Berlin",
        opened=(span("2026-10-24T22:00", "2026-10-25T10:30"),),
    )
    [of] = [day for day in found.values() if day.pieces]
    assert of.day == date(2026, 10, 25) and pieces(of) == [("00:00–24:00", 0)]
    assert [(strip.left, strip.width) for strip in of.strips] == [(0.0, 50.0)]
    assert of.open_hours == ("00:00–11:30",)


@pytest.mark.parametrize(
    "text", ["", "2026-13", "0000-01", "1969-12", "2100-01", "9999-12", "<b>", "2026-11-01"]
)
def test_an_address_that_names_no_month_means_this_one(text: str) -> None:
    """And one that does, that one, with its neighbours."""
    assert month_layout.month_of(text, today=NOW.date()) == NOVEMBER
    january = month_layout.month_of("2027-01", today=NOW.date())
    assert (month_layout.previous_month(january), month_layout.next_month(january)) == (
        date(2026, 12, 1),
        date(2027, 2, 1),
    )
