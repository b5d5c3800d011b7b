"""Limits of callers and owners over the API: 429 with the limit and Retry-After, nothing stored."""

import pytest
import redis
from pytest_django import Settings

from jobs.models import IdempotencyKey, Owner, Run, Submission
from jobs.owners import request_rates
from tests.jobs.api.conftest import ADD, ROOT, Caller, post, problem
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
