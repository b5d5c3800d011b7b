"""jobs/system/rollups/usage.py: by day, and shares of all owners. The API tests one span."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from fleet import Kind
from jobs.core import sql
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.system.rollups.usage import daily_usage, received_by_owner, usage
from tests.jobs.admin.conftest import failed_run
from tests.jobs.system.rollups.minutes import MINUTE, ended, minutes_ago, moved, rolled_up

__all__ = ["failed_run"]

HOUR = timedelta(hours=1)


def test_days_are_those_of_the_zone(failed_run: Run, acme: Owner) -> None:
    """Today is last; the days follow one another, also over a change of the clocks."""
    for zone in (ZoneInfo("UTC"), ZoneInfo("Pacific/Auckland"), ZoneInfo("America/New_York")):
        days = daily_usage(acme, days=31, zone=zone)
        dates = [day.start.date() for day in days]
        today = now().astimezone(zone).date()
        assert dates == [today - timedelta(days=before) for before in range(30, -1, -1)]
        assert all(day.start.hour == day.start.minute == 0 for day in days)
        assert days[-1].runs == {"failed": 1} and (days[-1].worker_seconds or 0) > 0
        assert all(day.runs == {} and day.worker_seconds == 0 for day in days[:-1])


@pytest.mark.usefixtures("committed", "broker")
def test_usage_is_the_same_before_and_after_its_minutes_are_counted(
    acme: Owner, northwind: Owner
) -> None:
    """Each end is counted once, also while one minute has rollups and the next has none."""
    for at in (minutes_ago(3), minutes_ago(2)):
        ended(acme, at)
        ended(acme, at, Kind.RETRYING, error_type="OSError", delay=0.0)
        ended(northwind, at)
        moved(acme, at, State.CANCELLED)
    start, end = now() - HOUR, now()
    before = usage(acme, start=start, end=end)
    assert before.runs == {"succeeded": 2, "cancelled": 2, "retrying": 2}
    assert before.worker_seconds and 0 < (before.received or 0) < 1
    shares = received_by_owner(start=start, end=end)
    rolled_up()
    for until in (minutes_ago(0), minutes_ago(2)):
        sql.query("UPDATE jobs_rollupposition SET counted_until = %s", [until])
        sql.query(
            "DELETE FROM jobs_rollup WHERE minute >= %(at)s; "
            "DELETE FROM jobs_rolluptotal WHERE minute >= %(at)s",
            {"at": until},
        )
        after = usage(acme, start=start, end=end)
        assert after.runs == before.runs
        assert after.worker_seconds == pytest.approx(before.worker_seconds)
        assert after.received == pytest.approx(before.received)
        assert received_by_owner(start=start, end=end) == pytest.approx(shares)


@pytest.mark.usefixtures("committed", "broker")
def test_counted_minutes_need_no_rows(acme: Owner) -> None:
    """Usage stays when runs are deleted. Spans that share a limit within a minute add up."""
    minute = minutes_ago(3)
    ended(acme, minute)
    rolled_up()
    sql.query("DELETE FROM jobs_attempt; DELETE FROM jobs_run")
    days = daily_usage(acme, days=2, zone=ZoneInfo("UTC"))
    assert [day.runs for day in days if day.runs] == [{"succeeded": 1}]
    limit = minute + MINUTE / 2
    halves = ((limit - HOUR, limit), (limit, limit + HOUR))
    assert [usage(acme, start=start, end=end).runs for start, end in halves] == [
        {},
        {"succeeded": 1},
    ]
