"""jobs/windows/wall_clock.py: when a clock shows a time, beside changes of it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.windows.wall_clock import is_repeated, is_skipped, moment_at, shown_at
from tests.jobs.schedules.clocks import ZONES


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


@given(st.sampled_from(ZONES), st.datetimes(datetime(2024, 1, 1), datetime(2033, 1, 1)))
def test_a_time_that_exists_is_shown_then(zone: str, shown: datetime) -> None:
    """What is not skipped is what the clock shows at its moment, first and last."""
    first, last = moment_at(shown, zone), moment_at(shown, zone, last=True)
    assert first <= last and (first == last or is_repeated(shown, zone))
    if is_skipped(shown, zone):
        assert first == last and shown_at(first, zone) > shown
    else:
        assert shown_at(first, zone) == shown_at(last, zone) == shown
