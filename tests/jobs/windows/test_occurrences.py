"""jobs/windows/occurrences.py and wall_clock.py: which occurrences count, from when to when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.windows import Effect, Entry, Span, checked, occurrences
from jobs.windows.wall_clock import is_repeated, moment_at

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
AHEAD = datetime(2026, 3, 29, tzinfo=UTC)  # at 01:00 UTC, 02:00 becomes 03:00 in Berlin
BACK = datetime(2026, 10, 25, tzinfo=UTC)  # at 01:00 UTC, 03:00 becomes 02:00 in Berlin
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


def berlin(
    text: str, hours: float, rule: str = "", effect: Effect = Effect.WINDOW, **more: object
) -> Entry:
    starts = datetime.fromisoformat(text)
    return checked(Entry(effect, starts, hours * HOUR, "Europe/Berlin", rule, **more))


def shown(entry: Entry, start: datetime, end: datetime | None = None) -> list[str]:
    """Return the occurrences of a day, or more, as times in UTC."""
    found = occurrences(entry, start=start, end=end or start + DAY)
    return [f"{span.start:%H:%M}-{span.end:%H:%M}" for span in found]


@pytest.mark.parametrize(
    ("starts", "hours", "day", "window", "freeze"),
    [
        ("22:00", 8, AHEAD - DAY / 4, "21:00-04:00", None),  # over the gap: an hour less
        ("22:00", 8, BACK - DAY / 4, "20:00-05:00", None),  # over the repeated hour: one more
        ("02:30", 2, AHEAD, "01:00-02:30", None),  # starts in the gap
        ("01:00", 1.5, AHEAD, "00:00-01:00", None),  # ends in the gap
        ("02:15", 0.5, AHEAD, "", None),  # lies in the gap
        ("02:00", 1, AHEAD, "", None),  # is the gap
        ("02:30", 2, BACK, "00:30-03:30", None),  # starts in the repeated hour
        ("01:00", 1.5, BACK, "23:00-00:30", "23:00-01:30"),  # ends in it
        ("02:00", 0.5, BACK, "00:00-00:30", "00:00-01:30"),  # lies in it
        ("01:00", 1, BACK, "23:00-00:00", "23:00-01:00"),  # ends as it begins
        ("02:00", 1, BACK, "00:00-02:00", None),  # is the repeated hour, twice
    ],
)
def test_changed_clocks(
    starts: str, hours: float, day: datetime, window: str, freeze: str | None
) -> None:
    """Starts and ends are what the clock shows; in doubt a window is shorter, a freeze longer."""
    for effect, wanted in ((Effect.WINDOW, window), (Effect.FREEZE, freeze or window)):
        entry = berlin(f"2026-01-05 {starts}", hours, "FREQ=DAILY", effect=effect)
        assert shown(entry, day - HOUR, day + 12 * HOUR) == ([wanted] if wanted else [])


def test_count_is_of_the_rule() -> None:
    """Dates that are taken out were counted; those that are added were not (RFC 5545)."""
    entry = berlin(
        "2026-06-01 10:00",
        1,
        "FREQ=DAILY;COUNT=3",
        excluded=(datetime(2026, 6, 2, 10),),
        added=(datetime(2026, 6, 5, 10),),
    )
    found = occurrences(entry, start=JUNE, end=JUNE + 300 * DAY)
    assert [span.start.day for span in found] == [1, 3, 5]


def test_approval_is_of_the_start() -> None:
    """What starts while it is approved counts to its end; also where it is clipped later."""
    entry = berlin("2026-05-01 22:00", 8, "FREQ=DAILY", approved=())
    assert shown(entry, JUNE, JUNE + 9 * DAY) == []
    standing = replace(entry, approved=(Span(JUNE, JUNE + DAY + 20 * HOUR),))
    assert shown(standing, JUNE, JUNE + 9 * DAY) == ["20:00-04:00"]
    longer = replace(standing, approved=(Span(JUNE, JUNE + DAY + 20 * HOUR + HOUR / 60),))
    assert shown(longer, JUNE, JUNE + 9 * DAY) == ["20:00-04:00"] * 2
    late = replace(standing, valid_from=JUNE + 23 * HOUR)
    assert shown(late, JUNE, JUNE + 9 * DAY) == ["23:00-04:00"]


def test_approval_of_each_occurrence() -> None:
    """Only those count whose start was approved, to the instant; both kinds must agree."""
    starts = frozenset({JUNE + 20 * HOUR, JUNE + 2 * DAY + 20 * HOUR, JUNE + 3 * DAY})
    entry = berlin("2026-05-01 22:00", 8, "FREQ=DAILY", approved_starts=starts)
    found = occurrences(entry, start=JUNE, end=JUNE + 9 * DAY)
    assert [span.start.day for span in found] == [1, 3]
    both = replace(entry, approved=(Span(JUNE + DAY, JUNE + 9 * DAY),))
    assert [span.start.day for span in occurrences(both, start=JUNE, end=JUNE + 9 * DAY)] == [3]


# --- the clock of a zone ------------------------------------------------------------------


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("zone", "shown", "first", "last"),
    [
        ("Europe/Berlin", "2026-06-01 12:00", "2026-06-01 10:00", "2026-06-01 10:00"),
        ("Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00", "2026-03-29 01:00"),
        ("Europe/Berlin", "2026-03-29 02:59:59", "2026-03-29 01:00", "2026-03-29 01:00"),
        ("Europe/Berlin", "2026-10-25 02:30", "2026-10-25 00:30", "2026-10-25 01:30"),
        ("Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30", "2026-10-03 15:30"),
        ("Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45", "2026-04-04 15:15"),
        ("America/Havana", "2026-03-08 00:20", "2026-03-08 05:00", "2026-03-08 05:00"),
        ("Pacific/Apia", "2011-12-30 12:00", "2011-12-30 10:00", "2011-12-30 10:00"),
    ],
)
def test_moments(zone: str, shown: str, first: str, last: str) -> None:
    """A skipped time is right after the gap, a day long too; a repeated one is first or last."""
    assert moment_at(wall(shown), zone) == wall(first).replace(tzinfo=UTC)
    assert moment_at(wall(shown), zone, last=True) == wall(last).replace(tzinfo=UTC)
    assert is_repeated(wall(shown), zone) == (first != last)
