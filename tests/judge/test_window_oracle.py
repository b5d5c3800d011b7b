"""The oracle of windows itself, at clock changes that can be checked by hand."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.judge.window_oracle import _on, open_minutes

HOUR = timedelta(hours=1)
AHEAD = datetime(2026, 3, 29, tzinfo=UTC)  # at 01:00 UTC, 02:00 becomes 03:00 in Berlin
BACK = datetime(2026, 10, 25, tzinfo=UTC)  # at 01:00 UTC, 03:00 becomes 02:00 in Berlin


@dataclass
class Item:
    """An entry, as the oracle knows it."""

    starts: datetime
    duration: timedelta
    rule: str = "FREQ=DAILY"
    effect: str = "window"
    zone: str = "Europe/Berlin"
    excluded: tuple = ()
    added: tuple = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    approved: tuple | None = None
    approved_starts: frozenset | None = None


def item(starts: str, hours: float, **more: object) -> Item:
    return Item(datetime.fromisoformat(f"2026-01-05T{starts}"), hours * HOUR, **more)


def times(calendars: list[list[Item]], day: datetime) -> str:
    """Return the open minutes from 22:00 UTC before a day until its 05:00."""
    start = day - 2 * HOUR
    minutes = [*open_minutes(calendars, start=start, end=day + 5 * HOUR), False]
    edges = [n for n in range(len(minutes)) if minutes[n] != (n > 0 and minutes[n - 1])]
    return " ".join(f"{start + timedelta(minutes=n):%H:%M}" for n in edges)


@pytest.mark.parametrize(
    ("starts", "hours", "day", "found"),
    [
        ("02:30", 2, AHEAD, "01:00 02:30"),
        ("01:00", 1.5, AHEAD, "00:00 01:00"),
        ("02:15", 0.5, AHEAD, ""),
        ("02:30", 2, BACK, "00:30 03:30"),
        ("01:00", 1.5, BACK, "23:00 00:30"),
    ],
)
def test_windows(starts: str, hours: float, day: datetime, found: str) -> None:
    """Skipped times are right after the gap; a repeated end is the first one."""
    assert times([[item(starts, hours)]], day) == found


def test_freezes_end_at_the_last() -> None:
    """A repeated end is the last one, also where it is the first minute that is repeated."""
    always = item("00:00", 24)
    for hours, end in ((1.5, "01:30"), (1, "01:00")):
        assert times([[always, item("01:00", hours, effect="freeze")]], BACK) == (
            f"22:00 23:00 {end} 05:00"
        )


def test_calendars() -> None:
    """Windows are a union, calendars must all be open, without windows there are only freezes."""
    early, late = item("00:00", 2), item("01:00", 3)
    day = AHEAD + timedelta(days=60)
    assert times([[early, late]], day) == "22:00 02:00"
    assert times([[early], [late]], day) == "23:00 00:00"
    assert times([[item("01:00", 1, effect="freeze")]], day) == "22:00 23:00 00:00 05:00"
    assert times([], day) == "22:00 05:00"


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU;WKST=MO", [5, 11, 19, 25]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU;WKST=SU", [5, 18, 19]),
        ("FREQ=MONTHLY;BYDAY=2MO,-1FR", [12, 30]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1,10", [10, 31]),
        ("FREQ=YEARLY;BYDAY=2MO", [12]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=5", []),
        ("FREQ=DAILY;INTERVAL=10", [5, 15, 25]),
    ],
)
def test_days_of_january(rule: str, days: list[int]) -> None:
    """The days of a rule that began on Monday the 5th, by RFC 5545."""
    starts = datetime(2026, 1, 5, 3, tzinfo=UTC).replace(tzinfo=None)
    on = [day for day in range(5, 32) if _on(rule, starts, date(2026, 1, day))]
    assert on == days
