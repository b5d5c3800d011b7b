"""jobs/windows/wall_clock.py: when a clock shows a time, beside changes of it."""

from datetime import UTC, datetime

import pytest

from jobs.windows.wall_clock import is_repeated, moment_at


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
