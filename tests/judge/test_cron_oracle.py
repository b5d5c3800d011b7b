"""The oracle itself, at clock changes that can be checked by hand."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.judge.cron_oracle import due, read

BERLIN_AHEAD = datetime(2026, 3, 29, tzinfo=UTC)  # at 01:00 UTC, 02:00 becomes 03:00
BERLIN_BACK = datetime(2026, 10, 25, tzinfo=UTC)  # at 01:00 UTC, 03:00 becomes 02:00
HAVANA_AHEAD = datetime(2026, 3, 8, 3, tzinfo=UTC)  # at 05:00 UTC, 00:00 becomes 01:00


@pytest.mark.parametrize(
    ("cron", "zone", "start", "times"),
    [
        ("30 2 * * *", "Europe/Berlin", BERLIN_AHEAD, "03:00"),
        ("0,30 2,3 * * *", "Europe/Berlin", BERLIN_AHEAD, "03:00 03:30"),
        ("*/30 2 * * *", "Europe/Berlin", BERLIN_AHEAD, ""),
        ("0 * * * *", "Europe/Berlin", BERLIN_AHEAD, "01:00 03:00 04:00 05:00"),
        ("30 2 * * *", "Europe/Berlin", BERLIN_BACK, "02:30"),
        ("*/30 2 * * *", "Europe/Berlin", BERLIN_BACK, "02:00 02:30 02:00 02:30"),
        ("15 * * * *", "Europe/Berlin", BERLIN_BACK, "02:15 02:15 03:15 04:15"),
        ("0 0 * * *", "America/Havana", HAVANA_AHEAD, "01:00"),
        ("15 0 8 3 *", "America/Havana", HAVANA_AHEAD, "01:00"),
        ("*/15 0 * * SUN", "America/Havana", HAVANA_AHEAD, ""),
    ],
)
def test_debians_rule(cron: str, zone: str, start: datetime, times: str) -> None:
    """Skipped jobs run once after the gap, repeated times run once, stars follow the clock."""
    [found] = due([cron], zone, start=start, end=start + timedelta(hours=4))
    shown = " ".join(f"{moment.astimezone(ZoneInfo(zone)):%H:%M}" for moment in found)
    assert shown == times


def test_days_are_both_or_either() -> None:
    """A star at the beginning of either field of days asks for both, else one is enough."""
    days = [date(2026, 8, 13), date(2026, 11, 13), date(2026, 11, 20)]  # Thu, Fri, Fri
    either, both = read("0 0 13 * FRI"), read("0 0 */12 * 5")
    assert [either.on(day) for day in days] == [True, True, True]
    assert [both.on(day) for day in days] == [False, True, False]
