"""jobs/definitions/spec.py: one job, checked field by field."""

from datetime import UTC, datetime
from typing import Any

import pytest

import tests.tasks  # noqa: F401  registers the tasks of scenes
from jobs import job
from jobs.definitions.fields import FIELDS
from jobs.definitions.spec import JobSpecs, fault_of, job_spec
from jobs.models import Job


@job(name="tests.job_spec.limited", soft_time_limit_seconds=60)
def limited() -> None: ...


ADD = {"key": "sum", "task": "tests.add", "arguments": {"x": 1, "y": 2}}


def columns(**changes: Any) -> dict[str, Any]:
    """Return the columns of a job that has no fault."""
    spec, faults = job_spec({**ADD, **changes})
    assert spec is not None, faults
    return dict(spec.columns)


def faults(**changes: Any) -> dict[str, str]:
    """Return the problems of a job by field."""
    spec, found = job_spec({**ADD, **changes})
    assert spec is None and found
    return dict(map(fault_of, found))


def test_what_is_left_out_has_the_models_defaults() -> None:
    """A job made from its key and its task alone is what the admin's empty form would make."""
    made = columns()
    for name in set(made) - {"task"}:
        assert made[name] == Job._meta.get_field(name).get_default(), name
    empty = {name: "" for name in FIELDS if name not in ("key", "task")}
    assert columns(**empty) == columns(**dict.fromkeys(empty)) == made


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "manual"),
        ({"cron": "0 4 * * *"}, "cron"),
        ({"interval_minutes": 15}, "interval"),
        ({"interval_seconds": 7}, "seconds"),
        ({"once_at": "2031-01-01T00:00:00Z"}, "once"),
        ({"schedule": "interval", "interval_minutes": 15}, "interval"),
    ],
)
def test_a_schedule_is_known_by_its_field(given: dict[str, Any], kind: str) -> None:
    """It may be named, and need not be."""
    assert columns(**given)["schedule"] == kind


def test_times_come_in_utc_and_once_on_the_minute() -> None:
    """As text with an offset or as a datetime; `jobs.schedules` rounds up."""
    made = columns(once_at="2031-01-01T01:00:01+01:00")
    assert made["once_at"] == datetime(2031, 1, 1, 0, 1, tzinfo=UTC)
    made = columns(cron="@daily", end_at=datetime(2031, 1, 1, tzinfo=UTC))
    assert (made["cron"], made["end_at"]) == ("@daily", datetime(2031, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"key": ""}, "key", "is required"),
        ({"key": "x" * 201}, "key", "at most 200"),
        ({"key": "\x00"}, "key", "NUL"),
        ({"name": "\ud800"}, "name", "surrogate"),
        ({"task": None}, "task", "is required"),
        ({"task": "tests.ad"}, "task", "did you mean 'tests.add'"),
        ({"task": 7}, "task", "7 is no Celery task"),
        ({"arguments": {"x": 1}}, "arguments", "y: is required"),
        ({"arguments": {"x": 1, "y": 2, "yy": 3}}, "arguments", "did you mean y?"),
        ({"arguments": [1, 2]}, "arguments", "is a mapping"),
        ({"every_minutes": 5}, "every_minutes", "is unknown"),
        ({"interval_minute": 5}, "interval_minute", "did you mean interval_minutes?"),
        ({"interval_minutes": 0}, "interval_minutes", "from 1 to"),
        ({"cron": "61 * * * *"}, "cron", ""),
        ({"cron": "* * * * *", "zone": "Europe/Berlim"}, "zone", "Europe/Berlin"),
        ({"schedule": "hourly"}, "schedule", "is one of"),
        ({"once_at": "tomorrow"}, "once_at", "with its offset"),
        ({"queue": "system"}, "queue", "is one of"),
        ({"labels": {"site": 1}}, "labels.site", "is text"),
        ({"target": "x" * 201}, "target", "at most 200"),
        ({"lock_key": 5}, "lock_key", "is text"),
        ({"lock_key": "a\nb"}, "lock_key", "control character"),
        ({"misfire": "never"}, "misfire", "is one of: skip, once, all"),
        ({"misfire_cap": 0}, "misfire_cap", "from 1"),
        ({"misfire_deadline_seconds": 0}, "misfire_deadline_seconds", "from 0.1"),
        ({"overlap": "maybe"}, "overlap", "is one of"),
        ({"overlap": "skip", "history_policy": "none"}, "overlap", "needs history_policy"),
        ({"history_policy": ["full"]}, "history_policy", "is one of"),
        ({"priority": 10}, "priority", "0 to 9"),
        ({"max_attempts": 2.0}, "max_attempts", "whole number"),
        ({"retry_on": ["a b"]}, "retry_on", "exception classes"),
        ({"retry_on": ["NoSuch"]}, "retry_on", "no exception class of this name"),
        ({"max_retries": 3}, "max_retries", "did you mean max_attempts"),
        ({"give_up_on": ["x" * 201]}, "give_up_on", "at most 200"),
        ({"time_limit_seconds": 1, "soft_time_limit_seconds": 1}, "soft_time_limit_seconds", ""),
        ({"enabled": 1}, "enabled", "true or false"),
        ({"smooth": "yes", "cron": "@daily"}, "smooth", "true or false"),
    ],
)
def test_a_wrong_field_is_named(given: dict[str, Any], field: str, problem: str) -> None:
    """With its limit, or what was meant."""
    found = faults(**given)
    assert list(found) == [field]
    assert problem in found[field]


def test_jobs_of_a_bulk_do_not_take_each_others_types() -> None:
    """True equals 1 to Python, and is checked once more."""
    specs = JobSpecs()
    assert specs({**ADD, "priority": 1})[1] == []
    assert specs({**ADD, "priority": True})[1] != []


def test_limits_go_together_with_those_of_the_task() -> None:
    """No run of such a job could be admitted: each due time would be dropped, or fail."""
    given = {"key": "k", "task": "tests.job_spec.limited"}
    for history in ("full", "none"):
        _, found = job_spec({**given, "time_limit_seconds": 30, "history_policy": history})
        assert [fault_of(fault)[0] for fault in found] == ["soft_time_limit_seconds"]
    assert job_spec({**given, "time_limit_seconds": 90})[0] is not None
    own = {"time_limit_seconds": 30, "soft_time_limit_seconds": 20}
    assert job_spec({**given, **own})[0] is not None
