"""jobs/windows/occurrences.py: which occurrences count, and from when to when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest

from jobs.windows import Effect, Entry, Span, checked, occurrences

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


def test_elapsed_time() -> None:
    """Rules in hours know no clock: no gap and no repeated hour, also in their lengths."""
    hourly = berlin("2026-01-05 00:15", 0.5, "FREQ=HOURLY;INTERVAL=2")
    for day in (AHEAD, BACK):
        assert shown(hourly, day, day + 6 * HOUR) == ["01:15-01:45", "03:15-03:45", "05:15-05:45"]
    minutes = berlin("2026-06-01 02:00", 0.25, "FREQ=MINUTELY;INTERVAL=45;COUNT=4")
    assert shown(minutes, JUNE) == ["00:00-00:15", "00:45-01:00", "01:30-01:45", "02:15-02:30"]
    until = replace(minutes, rule="FREQ=MINUTELY;INTERVAL=45;UNTIL=20260601T011500Z")
    assert shown(until, JUNE) == ["00:00-00:15", "00:45-01:00"]
    by_clock = replace(minutes, rule="FREQ=MINUTELY;INTERVAL=45;UNTIL=20260601T024500")
    assert shown(by_clock, JUNE) == ["00:00-00:15", "00:45-01:00"]


def test_an_old_rule_in_minutes_costs_nothing() -> None:
    """It is counted, not walked from its first occurrence."""
    entry = berlin("1970-01-01 00:00", 0.01, "FREQ=MINUTELY")
    began = perf_counter()
    assert len(list(occurrences(entry, start=JUNE, end=JUNE + HOUR))) == 60
    assert perf_counter() - began < 20


def test_dates_taken_out_and_added() -> None:
    """By the clock; one that is added and taken out is out."""
    days = [datetime(2026, 6, day, 22) for day in (2, 3, 4)]
    noon = datetime(2026, 6, 3, 12)
    entry = berlin(
        "2026-05-01 22:00", 2, "FREQ=DAILY", excluded=(days[1],), added=(noon, days[0], days[1])
    )
    assert shown(entry, JUNE + DAY, JUNE + 4 * DAY) == ["20:00-22:00", "10:00-12:00", "20:00-22:00"]


def test_a_date_taken_out_of_a_repeated_hour() -> None:
    """Of a rule in hours it takes both of a window and the first of a freeze: in doubt closed."""
    gone = (datetime(2026, 10, 25, 2, 15),)
    window = berlin("2026-10-25 00:15", 0.5, "FREQ=HOURLY", excluded=gone)
    freeze = replace(window, effect=Effect.FREEZE)
    assert shown(window, BACK - HOUR, BACK + 3 * HOUR) == ["23:15-23:45", "02:15-02:45"]
    assert shown(freeze, BACK, BACK + 3 * HOUR) == ["01:15-01:45", "02:15-02:45"]


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


def test_until_a_moment_or_by_the_clock() -> None:
    """The last occurrence may start at it; of a date all day is allowed."""
    for until, days in (
        ("20260603T080000Z", 3),
        ("20260603T075959Z", 2),
        ("20260603T100000", 3),
        ("20260603T095959", 2),
        ("20260603", 3),
    ):
        entry = berlin("2026-06-01 10:00", 1, f"FREQ=DAILY;UNTIL={until}")
        assert len(shown(entry, JUNE, JUNE + 9 * DAY)) == days


def test_what_is_valid() -> None:
    """Occurrences are clipped to it; what lies outside is gone."""
    entry = berlin(
        "2026-05-01 22:00",
        8,
        "FREQ=DAILY",
        valid_from=JUNE + 22 * HOUR,
        valid_until=JUNE + 2 * DAY + 21 * HOUR,
    )
    assert shown(entry, JUNE, JUNE + 9 * DAY) == ["22:00-04:00", "20:00-04:00", "20:00-21:00"]


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


def test_long_ones_that_started_before() -> None:
    """An occurrence counts in a span that it reaches into, however long ago it began."""
    month = berlin("2026-05-02 00:00", 31 * 24)
    assert shown(month, JUNE) == ["22:00-22:00"]
    assert shown(month, JUNE + DAY) == []
    assert (
        shown(month, datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 1, 22, tzinfo=UTC)) == []
    )
