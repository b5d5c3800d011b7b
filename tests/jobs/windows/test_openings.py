"""jobs/windows/openings.py: open, until when, and when next, over all calendars that apply."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from jobs.windows import (
    CalendarHours,
    Effect,
    Entry,
    Span,
    closes_at,
    is_open,
    next_opening,
    open_minutes,
    open_spans,
)
from jobs.windows.openings import HORIZON

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NONE = timedelta(0)


def entry(effect: Effect, first: float, hours: float, rule: str = "", **more: object) -> Entry:
    """Return a window or freeze that starts so many hours after Monday's midnight in UTC."""
    starts = MONDAY.replace(tzinfo=None) + first * HOUR
    return Entry(effect, starts, hours * HOUR, "UTC", rule, **more)


def window(first: float, hours: float, rule: str = "", **more: object) -> Entry:
    return entry(Effect.WINDOW, first, hours, rule, **more)


def freeze(first: float, hours: float, rule: str = "", **more: object) -> Entry:
    return entry(Effect.FREEZE, first, hours, rule, **more)


def span(first: float, last: float) -> Span:
    return Span(MONDAY + first * HOUR, MONDAY + last * HOUR)


def week(*calendars: CalendarHours) -> list[Span]:
    return open_spans(calendars, start=MONDAY, end=MONDAY + 7 * DAY)


# The night of every day, 22 to 6; closed on Wednesday until 4; a change day of the company.
NIGHTS = CalendarHours((window(-2, 8, "FREQ=DAILY"),), cut_off=HOUR / 2)

entries = st.builds(
    entry,
    st.sampled_from(Effect),
    st.integers(-60, 160),
    st.integers(1, 60),
    st.sampled_from(("", "", "FREQ=DAILY;INTERVAL=3", "FREQ=WEEKLY", "FREQ=HOURLY;INTERVAL=61")),
)
calendars = st.builds(
    CalendarHours,
    st.lists(entries, max_size=4).map(tuple),
    st.integers(0, 5).map(lambda n: n * HOUR),
)
hours = st.integers(-100, 300)


def hours_open(*some: CalendarHours) -> set[int]:
    """Return the hours, counted from Monday, in which all of them are open."""
    spans = open_spans(some, start=MONDAY - 100 * HOUR, end=MONDAY + 300 * HOUR)
    return {
        n for one in spans for n in range(*((m - MONDAY) // HOUR for m in (one.start, one.end)))
    }


def test_windows_are_a_union_and_a_freeze_wins() -> None:
    """What any window opens is open, but for freezes, however long the windows are."""
    assert week(CalendarHours((window(10, 5), window(12, 8), window(20, 1), window(40, 9)))) == [
        span(10, 21),
        span(40, 49),
    ]
    assert week(CalendarHours((window(0, 168), freeze(30, 4)))) == [span(0, 30), span(34, 168)]
    assert week(CalendarHours((window(0, 9), freeze(-2, 20)))) == []


def test_all_calendars_must_be_open() -> None:
    """Owner, job and target each have their say."""
    day, late = CalendarHours((window(0, 12, "FREQ=DAILY"),)), CalendarHours((window(10, 30),))
    assert week(day, late) == [span(10, 12), span(24, 36)]
    assert week(day, late, day) == week(late, day)


def test_without_windows_a_calendar_is_open() -> None:
    """No calendar, one without entries, and one with freezes only say no to nothing else."""
    assert week() == week(CalendarHours(())) == [span(0, 168)]
    assert week(CalendarHours((freeze(30, 4),))) == [span(0, 30), span(34, 168)]


def test_a_window_that_nobody_approved_opens_nothing() -> None:
    """It is one all the same, so its calendar is closed, not open for want of windows."""
    assert week(CalendarHours((window(10, 5, approved=()),))) == []


@given(st.lists(calendars, max_size=3), calendars)
def test_more_calendars_open_less(some: list[CalendarHours], one: CalendarHours) -> None:
    """Together they are open where all of them are, in whatever order they come."""
    both = hours_open(*some, one)
    assert both == hours_open(*some) & hours_open(one) == hours_open(one, *reversed(some))


@given(calendars, st.lists(entries, max_size=3))
def test_entries_by_their_effect(calendar: CalendarHours, more: list[Entry]) -> None:
    """A freeze more closes just what it covers; a window more opens what no freeze closes."""
    for one in more:
        whole = CalendarHours((*calendar.entries, one))
        alone = (
            hours_open(CalendarHours((window(-9_000, 1), one))) if one.effect == "window" else set()
        )
        if one.effect == "freeze":
            assert hours_open(whole) == hours_open(calendar) & hours_open(CalendarHours((one,)))
        elif any(other.effect == "window" for other in calendar.entries):
            frozen = [other for other in calendar.entries if other.effect == "freeze"]
            opened = alone & hours_open(CalendarHours(tuple(frozen)))
            assert hours_open(whole) == hours_open(calendar) | opened


@given(st.lists(calendars, max_size=3), st.lists(hours, min_size=3, max_size=5))
def test_it_does_not_matter_where_one_begins(some: list[CalendarHours], cuts: list[int]) -> None:
    """Spans that are put together are those of the whole, and so are their minutes."""
    first, *between, last = (MONDAY + n * HOUR for n in sorted(cuts))
    whole = open_minutes(some, start=first, end=last)
    minutes = 0.0
    for cut in [*between, last]:
        minutes += open_minutes(some, start=first, end=cut)
        first = max(first, cut)
    assert minutes == whole


@given(st.lists(calendars, max_size=3), hours, st.integers(0, 90))
def test_the_fit_rule(some: list[CalendarHours], at: int, needed: int) -> None:
    """What starts is done by the close, less the largest cut-off of the calendars that apply."""
    moment = MONDAY + at * HOUR
    cut_off = max((one.cut_off for one in some), default=NONE)
    closes = closes_at(some, at=moment)
    in_it = bool(open_spans(some, start=moment, end=moment + timedelta(microseconds=1)))
    fits = in_it and (closes is None or moment + needed * HOUR <= closes - cut_off)
    assert is_open(some, at=moment, needed=needed * HOUR) == fits
    assert in_it or closes == moment


@given(st.lists(calendars, max_size=3), hours, st.integers(0, 90))
def test_the_next_opening_is_the_first_that_fits(
    some: list[CalendarHours], at: int, needed: int
) -> None:
    """At its start the fit rule holds; before it, at no hour; it closes when the opening does."""
    after = MONDAY + at * HOUR
    found = next_opening(some, after=after, needed=needed * HOUR, horizon=40 * DAY)
    tries = 40 * 24 if found is None else (found.start - after) // HOUR
    tested = [after + n * HOUR for n in range(min(tries, 200))]
    assert not any(
        is_open(some, at=moment, needed=needed * HOUR)
        for moment in tested
        if moment + 100 * HOUR < after + 40 * DAY  # an opening is cut at the horizon
    )
    if found is not None:
        assert is_open(some, at=found.start, needed=needed * HOUR)
        closes = closes_at(some, at=found.start)
        assert found.end == min(closes or after + 40 * DAY, after + 40 * DAY)


def test_the_edges_of_a_window() -> None:
    """It is open at its first instant, and shut at the instant of its end."""
    night = CalendarHours((window(22, 8),))
    assert is_open([night], at=MONDAY + 22 * HOUR, needed=8 * HOUR)
    assert not is_open([night], at=MONDAY + 30 * HOUR)
    assert closes_at([night], at=MONDAY + 30 * HOUR) == MONDAY + 30 * HOUR


def test_never() -> None:
    """What does not fit within a year is said; what never closes too."""
    assert next_opening([NIGHTS], after=MONDAY, needed=8 * HOUR) is None
    assert next_opening([CalendarHours((window(-60, 8),))], after=MONDAY, needed=NONE) is None
    assert closes_at([], at=MONDAY) is None
    assert next_opening([], after=MONDAY, needed=9 * HOUR) == Span(MONDAY, MONDAY + HORIZON)
