"""fleet/beat/due.py: due times are those of the schedule, whatever o'clock it is."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab
from celery.schedules import schedule as interval
from django_celery_beat.clockedschedule import clocked
from django_celery_beat.tzcrontab import TzAwareCrontab

from fleet.beat.due import due_after, last_due, send_id

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)


def at(text: str) -> datetime:
    """Return a time of March 2026 in UTC, from "day hour:minute:second"."""
    return datetime.strptime(f"2026-03-{text}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "last", "due"),
    [
        (interval(10), "20 12:00:03", "20 12:00:13"),
        (crontab(minute="0", hour="3"), "20 03:00:00", "21 03:00:00"),
        (crontab(minute="0", hour="3"), "20 02:59:59", "20 03:00:00"),
        (crontab(minute="*/20"), "20 12:20:01", "20 12:40:00"),
        (crontab(minute="0", hour="3,15"), "19 03:00:00", "19 15:00:00"),
        (TzAwareCrontab(minute="0", hour="3", tz=ZoneInfo("Asia/Tokyo")), "20 12:00:00", None),
    ],
)
def test_the_next_due_time_counts_from_the_last(schedule: Any, last: str, due: str | None) -> None:
    """It is the same at any time of asking, and on the schedule's own clock."""
    assert due_after(schedule, at(last)) == at(due or "20 18:00:00")


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        (interval(10), "20 11:59:50", "20 12:00:00"),
        (interval(10), "20 11:58:03", "20 11:59:53"),
        (interval(10), "20 11:59:55", "20 12:00:05"),
        (crontab(minute="0", hour="3"), "16 03:00:00", "20 03:00:00"),
        (crontab(minute="*"), "01 00:00:00", "20 12:00:00"),
        (crontab(minute="0", hour="13"), "20 11:00:00", "20 13:00:00"),
        (clocked(at("20 09:00:00")), "20 08:00:00", "20 09:00:00"),
        (clocked(at("20 09:00:00")), "20 10:00:00", "20 10:00:00"),
    ],
)
def test_the_last_due_time_stands_for_all_before_it(schedule: Any, after: str, due: str) -> None:
    """On the schedule's own grid; the next one, when none has passed."""
    assert last_due(schedule, after=at(after), now=NOON) == at(due)


def test_a_send_s_id_is_that_of_name_and_due_time() -> None:
    """In whatever zone the time is written."""
    tokyo = NOON.astimezone(ZoneInfo("Asia/Tokyo"))
    assert send_id("report", NOON) == send_id("report", tokyo)
    later = NOON + timedelta(seconds=1)
    others = {send_id("other", NOON), send_id("report", later)}
    assert len(others | {send_id("report", NOON)}) == 3
