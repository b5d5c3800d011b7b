"""jobs/core/zones.py: what a zone's clock does in a day of UTC."""

from datetime import UTC, datetime

import pytest

from jobs.core.zones import DAY, spans, zone_names


def day_of(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) // 86_400


@pytest.mark.parametrize(
    ("zone", "day", "change", "jump"),
    [
        ("Europe/Berlin", day_of(2026, 3, 29), 1 * 60, 60),
        ("Europe/Berlin", day_of(2026, 10, 25), 1 * 60, -60),
        ("Australia/Lord_Howe", day_of(2026, 4, 4), 15 * 60, -30),
        ("Antarctica/Troll", day_of(2026, 3, 29), 1 * 60, 120),
        ("Europe/Chisinau", day_of(2026, 10, 25), 0, -60),
    ],
)
def test_a_change_of_the_clock(zone: str, day: int, change: int, jump: int) -> None:
    """The span after it says what was skipped before, or what is shown again."""
    after = spans(zone, day)[-1]
    assert after.first == day * DAY + change and after.end == (day + 1) * DAY
    assert (after.skipped, after.repeated_until - after.first) == (max(0, jump), max(0, -jump))
    assert spans(zone, day - 1)[-1].offset == after.offset - jump


def test_names_that_mean_a_machine_are_not_offered() -> None:
    """`localtime` is another zone on each machine."""
    assert "Europe/Berlin" in zone_names() and "UTC" in zone_names()
    assert not {"localtime", "Factory", "posixrules", "posix/Europe/Berlin"} & zone_names()
