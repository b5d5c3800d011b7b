"""jobs/api/jobs: bad input of a job and of a bulk; the answer has field and limit."""

from typing import Any

import pytest
from pytest_django import Settings

from jobs.models import (
    Job,
    Owner,
    Target,
)
from tests.jobs.api.conftest import Caller, post, problem
from tests.jobs.api.job_scenes import JOB, made


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({"zone": "Europe/Berlinn", "cron": "@daily"}, "zone", "Europe/Berlin"),
        ({"interval_seconds": 120}, "interval_seconds", "interval_minutes=2"),
        ({"once_at": "2027-02-30T00:00:00Z"}, "once_at", "day"),
        ({"once_at": "2027-01-01T00:00:00"}, "once_at", "timezone"),
        ({"once_at": "9999-01-01T00:00:00Z"}, "once_at", "2199"),
        ({"once_at": "0001-01-01T00:00:00+14:00"}, "once_at", "1970"),
        ({"deadline_seconds": 1e18}, "deadline_seconds", "2592000"),
        ({"labels": {"a": "b" * 201}}, "labels.a", "200"),
        ({"lock_key": "a\tb"}, "lock_key", "control"),
        ({"arguments": {"x": "one", "y": 2}}, "arguments.x", "integer"),
        ({"arguments": [1]}, "arguments", "dict"),
        ({"phase": 3}, "phase", "not permitted"),
        ({"paused_until": None}, "paused_until", "not permitted"),
    ],
)
def test_bad_input_is_refused_with_field_and_limit(
    caller: Caller, acme: Owner, *, fields: dict[str, Any], field: str, told: str
) -> None:
    """In a single job and in a bulk; nothing is stored."""
    client = caller(acme)
    refused = problem(post(client, "/jobs", {**JOB, **fields}), 422, "invalid")
    assert refused["field"] == field and told in refused["detail"].replace(",", ""), refused
    bulk = problem(
        post(client, "/jobs/upsert", {"jobs": [JOB, {**JOB, "key": "b", **fields}]}), 422, "invalid"
    )
    [fault] = [each for each in bulk["errors"] if each["field"] == f"jobs.1.{field}"]
    assert fault["index"] == 1 and told in fault["detail"].replace(",", "")
    assert not Job.objects.exists() and not Target.objects.exists()


@pytest.mark.parametrize("task", ["tests.nothing", "os.system", "fairshift.system.settle", ""])
def test_only_tasks_on_offer_are_taken(caller: Caller, acme: Owner, *, task: str) -> None:
    """A dotted path is not imported."""
    refused = problem(post(caller(acme), "/jobs", {**JOB, "task": task}), 422, "unknown_task")
    assert refused["field"] == "task"
    assert not Job.objects.exists()


def test_an_owner_has_so_many_jobs_at_most(caller: Caller, acme: Owner, settings: Settings) -> None:
    """429; changes of jobs that are there still work."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_OWNER_JOBS": 2}
    client = caller(acme)
    for key in ("a", "b"):
        made(client, key=key)
    refused = post(client, "/jobs", {**JOB, "key": "c"})
    assert problem(refused, 429, "jobs")["limit"] == 2 and refused["Retry-After"]
    jobs = [{**JOB, "key": key, "priority": 1} for key in ("a", "b")]
    assert post(client, "/jobs/upsert", {"jobs": jobs}).json()["updated"] == 2
    more = post(client, "/jobs/upsert", {"jobs": [*jobs, JOB]})
    problem(more, 429, "jobs")
    assert Job.objects.count() == 2


def test_one_bad_job_of_many_stores_none(caller: Caller, acme: Owner) -> None:
    """Every bad one is listed with its index, whatever is wrong with it."""
    jobs: list[Any] = [{**JOB, "key": f"job-{number}"} for number in range(1_000)]
    jobs[3] = {**jobs[3], "zone": "Mars"}
    jobs[500] = "nonsense"
    jobs[700] = {**jobs[700], "task": "tests.nothing"}
    jobs[998] = {**jobs[998], "key": "job-997"}
    jobs[999] = {**jobs[999], "priority": 10, "max_attempts": 0}
    refused = problem(post(caller(acme), "/jobs/upsert", {"jobs": jobs}), 422, "invalid")
    assert [(each["index"], each["field"]) for each in refused["errors"]] == [
        (3, "jobs.3.zone"),
        (500, "jobs.500"),
        (700, "jobs.700.task"),
        (998, "jobs.998.key"),
        (999, "jobs.999.priority"),
        (999, "jobs.999.max_attempts"),
    ]
    assert not Job.objects.exists()


def test_a_bulk_has_a_limit(caller: Caller, acme: Owner, settings: Settings) -> None:
    """413 with the limit, and an empty bulk is none."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_MAX_BATCH": 2}
    client = caller(acme)
    three = post(client, "/jobs/upsert", {"jobs": [JOB] * 3})
    assert problem(three, 413, "batch_too_large")["limit"] == 2
    assert problem(post(client, "/jobs/upsert", {"jobs": []}), 422, "invalid")["field"] == "jobs"
