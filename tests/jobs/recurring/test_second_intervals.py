"""jobs/recurring/second_intervals.py: a job in seconds runs on a grid."""

from datetime import timedelta
from typing import Any

import pytest

from jobs import tasks
from jobs.core.sql import now
from jobs.models import Job, Missed, Owner, Run
from jobs.recurring.second_intervals import trigger_second_interval
from tests.jobs.recurring.scenes import OLD, recurring, runs_of
from tests.jobs.scenes import without_triggers


def every(owner: Owner, seconds: int = 7, **fields: Any) -> Job:
    return recurring(owner, schedule="seconds", interval_seconds=seconds, **fields)


def test_a_due_time_lies_on_the_grid_and_has_one_run(acme: Owner) -> None:
    """However often celery-beat sends."""
    job = every(acme, 3_601, effective_from=OLD)
    assert trigger_second_interval(job.pk) == 2 and trigger_second_interval(job.pk) == 0
    before, newest = runs_of(job)
    assert newest <= now() < newest + timedelta(seconds=3_601)
    assert newest - before == timedelta(seconds=3_601)
    assert int(newest.timestamp()) % 3_601 == 0


def test_not_before_the_schedule_holds(acme: Owner) -> None:
    """A job that was made a moment ago has passed no due time yet."""
    job = every(acme, 86_399, effective_from=now())
    assert trigger_second_interval(job.pk) == 0
    Job.objects.filter(pk=job.pk).update(effective_from=now() - timedelta(seconds=86_399))
    assert trigger_second_interval(job.pk) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"enabled": False},
        {"paused_until": "2200-01-01T00:00Z"},
        {"start_at": "2200-01-01T00:00Z"},
        {"end_at": "2020-01-01T00:00Z"},
        {"schedule": "manual"},
    ],
)
def test_what_is_off_paused_or_out_of_bounds_does_not_run(
    acme: Owner, fields: dict[str, Any]
) -> None:
    """Nor does what is gone."""
    job = every(acme, effective_from=OLD)
    with without_triggers():
        Job.objects.filter(pk=job.pk).update(**fields)
    assert trigger_second_interval(job.pk) == trigger_second_interval(job.pk + 1) == 0
    assert not Run.objects.exists()


def test_the_system_does_it_by_itself(acme: Owner) -> None:
    """Its own tasks fire jobs, sync their PeriodicTasks, and record pauses that have ended."""
    job = every(acme, 3_601, effective_from=OLD)
    assert tasks.fire(job.pk) == 2
    with without_triggers():
        Job.objects.filter(pk=job.pk).update(paused_from=OLD, paused_until=now())
    assert tasks.settle() == {"pauses": 1, "mended": 1}
    assert tasks.settle() == {"pauses": 0, "mended": 0}
    assert Missed.objects.get(job=job).reason == "paused"
