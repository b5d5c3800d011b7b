"""jobs/owners/usage.py: usage by day, and the shares of all owners. The API tests one span."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from fleet import Kind
from jobs.core.sql import now
from jobs.models import Owner, Run
from jobs.owners import usage
from jobs.owners.usage import daily_usage, received_by_owner
from tests.jobs.scenes import admitted, living_worker, recorded, submitted


@pytest.fixture
def failed_run(acme: Owner) -> Run:
    """A run of acme that a worker has run."""
    [run] = submitted(acme, max_attempts=1)
    admission = admitted(living_worker(), run)
    recorded(admission, Kind.STARTED)
    recorded(admission, Kind.FAILED, error_type="builtins.ValueError")
    return run


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


def test_days_of_others_are_not_counted(failed_run: Run, northwind: Owner) -> None:
    submitted(northwind, 2)
    assert daily_usage(northwind, days=1, zone=ZoneInfo("UTC"))[0].runs == {"queued": 2}


def test_old_days_stay_uncounted_when_the_time_is_over(
    failed_run: Run, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Today is counted first."""
    clock = iter([0.0, 0.1, 0.8, 0.9])
    monkeypatch.setattr(usage, "monotonic", lambda: next(clock))
    before, yesterday, today = daily_usage(acme, days=3, zone=ZoneInfo("UTC"))
    assert today.runs == {"failed": 1}
    assert yesterday.runs is yesterday.worker_seconds is before.runs is None


def test_the_shares_of_owners_add_up(failed_run: Run, acme: Owner, northwind: Owner) -> None:
    """Those without worker time have none; a span without any has no shares."""
    end = now()
    assert received_by_owner(start=end - timedelta(hours=1), end=end) == {acme.pk: 1.0}
    day = timedelta(days=1)
    assert received_by_owner(start=end - 2 * day, end=end - day) == {}
