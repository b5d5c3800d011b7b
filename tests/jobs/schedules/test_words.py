"""jobs/schedules/words.py: a schedule in words, and notes on changes of the clock."""

from datetime import UTC, datetime

import pytest

from jobs.schedules import Schedule, in_words, next_times, notes

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule("manual"), "by hand only"),
        (Schedule("once", once_at=NOON), "once, at 2026-06-01 12:00 UTC"),
        (
            Schedule("once", once_at=NOON, zone="Asia/Kathmandu"),
            "once, at 2026-06-01 17:45 Asia/Kathmandu",
        ),
        (Schedule("interval", interval_minutes=1), "every minute"),
        (Schedule("interval", interval_minutes=15), "every 15 minutes"),
        (Schedule("interval", interval_minutes=60), "every hour"),
        (Schedule("interval", interval_minutes=1440), "every 24 hours"),
        (Schedule("interval", interval_minutes=90), "every 90 minutes"),
        (
            Schedule("interval", interval_minutes=5, start_at=NOON, end_at=NOON),
            "every 5 minutes, from 2026-06-01 12:00 UTC, until 2026-06-01 12:00 UTC",
        ),
        (Schedule("seconds", interval_seconds=10), "every 10 seconds"),
        (
            Schedule("cron", cron="5 4 * * 0", zone="Europe/Berlin"),
            "At 04:05 on Sunday, Europe/Berlin",
        ),
        (Schedule("cron", cron="@hourly"), "At the start of every hour, UTC"),
        (Schedule("cron", cron="0 0 21 * *"), "At 00:00 on the 21st day of every month, UTC"),
        (Schedule("cron", cron="0 0 12 * *"), "At 00:00 on the 12th day of every month, UTC"),
        (Schedule("cron", cron="*/22 * * * *"), "Every 22nd minute of every hour, UTC"),
    ],
)
def test_words(schedule: Schedule, words: str) -> None:
    """As a person would say it; moments in the job's zone."""
    assert in_words(schedule) == words


def noted(cron: str, zone: str, after: datetime, count: int) -> list[str]:
    times = next_times(Schedule("cron", cron=cron, zone=zone), after=after, count=count)
    return notes(times, zone)


def test_changes_of_the_clock_are_noted() -> None:
    """The time after a gap says where skipped times are; one that comes twice, which one it is."""
    ahead, back = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, 23, tzinfo=UTC)
    skipped = "clocks go from 02:00 to 03:00; fixed times between run at 03:00"
    assert noted("30 2 * * *", "Europe/Berlin", ahead, 3) == ["", skipped, ""]
    assert noted("*/30 2 * * *", "Europe/Berlin", back, 5) == [
        "02:00 comes twice; this is the first",
        "02:30 comes twice; this is the first",
        "02:00 comes twice; this is the second",
        "02:30 comes twice; this is the second",
        "",
    ]
    first = "02:30 comes twice; this is the first"
    assert noted("30 2 * * *", "Europe/Berlin", back, 2) == [first, ""]
