"""jobs/windows/openings.py and gate.py: open, until when, and when next, by all that apply.

All changes of all zones, with more calendars, are in tests/chaos/test_window_grid.py.
"""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.windows import (
    CalendarHours,
    Effect,
    Entry,
    Gate,
    Span,
    closes_at,
    gate_of,
    is_open,
    next_opening,
    open_minutes,
    open_spans,
)
from jobs.windows.openings import HORIZON
from tests.jobs.schedules.clocks import ZONES, changes
from tests.jobs.windows.calendars import disagreements, some_calendars

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


# --- calendars made by chance, beside a clock that is stepped by the minute ---------------


@pytest.mark.parametrize("count", [40, pytest.param(80, marks=pytest.mark.proof)])
@pytest.mark.parametrize("part", range(4))
def test_changes_of_the_clock(part: int, count: int) -> None:
    """Around a change, what is open is what the oracle finds: of all zones, `count` calendars."""
    chance = Random(part)
    seen = 0
    zones = [zone for number, zone in enumerate(ZONES) if number % 4 == part]
    while seen < count // 4:
        for zone in zones:
            change = chance.choice(changes(zone))
            calendars = some_calendars(chance, change, zone)
            assert disagreements(calendars, change) == []
            seen += len(calendars)


# --- queued now, or looked at when --------------------------------------------------------


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def opening(*hours: float, length: float = 2, cut_off: timedelta = NONE) -> CalendarHours:
    """Return a calendar that opens so many hours from noon, each time for that long."""
    starts = [datetime(2026, 11, 20, 12) + hour * HOUR for hour in hours]
    entries = [Entry(Effect.WINDOW, one, length * HOUR, "UTC") for one in starts]
    return CalendarHours(tuple(entries), cut_off=cut_off)


FIVE_SIXTHS = HOUR * 5 / 6


@pytest.mark.parametrize(
    ("calendars", "needed", "delay", "gate"),
    [
        # Without a calendar, or with one that nothing closes within a year: no last moment.
        ((), NONE, NONE, Gate(is_open=True)),
        ((CalendarHours(()),), NONE, NONE, Gate(is_open=True)),
        # The last moment is that of the calendar which closes first, less its cut-off.
        (
            (opening(-1), opening(-1, length=4, cut_off=HOUR / 4)),
            *(HOUR / 2, NONE, Gate(is_open=True, not_after=NOON + HOUR / 4)),
        ),
        # An opening is measured by what is left of it.
        ((opening(-1, 5),), HOUR * 2, NONE, Gate(opens_at=NOON + HOUR * 5)),
        ((opening(-1, 5),), HOUR * 3, NONE, Gate()),
        # Only openings that are still to come are spread, over the first half of what fits.
        ((opening(3),), NONE, HOUR, Gate(opens_at=NOON + HOUR * 4)),
        ((opening(3),), HOUR * 1.5, FIVE_SIXTHS, Gate(opens_at=NOON + HOUR * (3 + 1 / 12))),
        ((opening(3),), HOUR * 2, FIVE_SIXTHS, Gate(opens_at=NOON + HOUR * 3)),
        ((opening(-1),), NONE, HOUR, Gate(is_open=True, not_after=NOON + HOUR)),
    ],
)
def test_a_run_is_queued_now_or_looked_at_when_it_fits(
    calendars: tuple[CalendarHours, ...], needed: timedelta, delay: timedelta, gate: Gate
) -> None:
    """By all calendars that apply; a late start leaves room for the attempt."""
    assert gate_of(calendars, now=NOON, needed=needed, delay=delay) == gate
