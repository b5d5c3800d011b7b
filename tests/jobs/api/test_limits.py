"""Limits of callers, owners and bulks over the API: named with the limit, and nothing stored."""

from typing import Any

import pytest
import redis
from pytest_django import Settings

from jobs.models import AuditEntry, IdempotencyKey, Job, Owner, Run, Submission
from jobs.owners import request_rates
from tests.jobs.api.conftest import ADD, ROOT, Caller, post, problem
from tests.jobs.api.job_scenes import JOB, made
from tests.jobs.scenes import submitted


@pytest.fixture
def rates(broker: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis has time to count on a busy machine."""
    monkeypatch.setattr(request_rates, "TIMEOUT_SECONDS", 5.0)


@pytest.mark.usefixtures("rates")
@pytest.mark.parametrize("name", ["token_rate", "owner_rate"])
def test_a_fast_caller_is_answered_429(
    caller: Caller, acme: Owner, northwind: Owner, settings: Settings, *, name: str
) -> None:
    """A refused submit stores nothing; the tokens of another owner are not slowed down."""
    limit = {"token_rate": "API_TOKEN_PER_MINUTE", "owner_rate": "API_OWNER_PER_MINUTE"}[name]
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, limit: 1}
    client = caller(acme)
    assert client.get(f"{ROOT}/runs").status_code == 200
    refused = post(client, "/runs", ADD)
    assert problem(refused, 429, name)["limit"] == 1
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert not Run.objects.exists()
    assert caller(northwind).get(f"{ROOT}/runs").status_code == 200


def test_an_owner_has_a_limit_of_waiting_runs(
    caller: Caller, acme: Owner, northwind: Owner, settings: Settings
) -> None:
    """Of one run and of many in one request; another owner still submits."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_OWNER_WAITING_RUNS": 3}
    submitted(acme, 2)
    client = caller(acme)
    many = post(client, "/submissions", {**ADD, "arguments": [ADD["arguments"]] * 2})
    assert problem(many, 429, "waiting_runs")["limit"] == 3 and int(many["Retry-After"]) > 0
    key = {"Idempotency-Key": "order-7"}
    assert post(client, "/runs", ADD, **key).status_code == 202
    one = post(client, "/runs", ADD)
    assert problem(one, 429, "waiting_runs")["limit"] == 3 and int(one["Retry-After"]) > 0
    assert Run.objects.count() == 3 and Submission.objects.count() == 1
    assert IdempotencyKey.objects.count() == 1
    assert post(caller(northwind), "/runs", ADD).status_code == 202


def test_an_owner_has_so_many_jobs_at_most(caller: Caller, acme: Owner, settings: Settings) -> None:
    """429; changes of jobs that are there still work, and are one entry in the audit."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_OWNER_JOBS": 2}
    client = caller(acme)
    for key in ("a", "b"):
        made(client, key=key)
    refused = post(client, "/jobs", {**JOB, "key": "c"})
    assert problem(refused, 429, "jobs")["limit"] == 2 and refused["Retry-After"]
    jobs = [{**JOB, "key": key, "priority": 1} for key in ("a", "b")]
    done = post(client, "/jobs/upsert", {"jobs": jobs}).json()
    assert done == {"created": 0, "updated": 2, "unchanged": 0}
    entry = AuditEntry.objects.get(action="upsert jobs")
    assert entry.owner == acme and entry.details["updated"] == 2
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
