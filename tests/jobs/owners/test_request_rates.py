"""Rates of requests: one algorithm in plain Python and in Redis; caps; Redis away."""

import time
from collections.abc import Callable
from math import inf

import pytest
import redis
from celery import current_app
from pytest_django import Settings

from fleet import Bucket, RequestRates, SharedRequestRates, Verdict
from jobs.core.errors import LimitExceeded
from jobs.models import Owner
from jobs.models.access import access_of
from jobs.owners import request_rates
from jobs.owners.request_rates import refuse_fast_caller
from jobs.owners.tokens import make_token

Take = Callable[[list[Bucket]], Verdict]


@pytest.fixture(params=["python", "redis"])
def take(request: pytest.FixtureRequest, broker: redis.Redis) -> Take:
    """Both engines; neither lets a bucket of one request an hour fill within a scene."""
    if request.param == "python":
        rates = RequestRates()
        return lambda buckets: rates.take(buckets, now=1_000_000.0)
    shared = SharedRequestRates(current_app._get_current_object(), "jobs")
    return lambda buckets: shared.take(buckets, timeout=5.0)


def test_a_burst_passes_and_the_next_request_waits(take: Take) -> None:
    """For as long as one request takes at the rate."""
    bucket = Bucket("token:1", per_second=1 / 3600, burst=3)
    assert [take([bucket]).wait_seconds for _ in range(3)] == [0, 0, 0]
    assert take([bucket]).wait_seconds == pytest.approx(3600, abs=30)
    assert take([Bucket("token:2", 1 / 3600, 3)]) == Verdict()


def test_a_full_bucket_takes_nothing_from_the_others(take: Take) -> None:
    """Else a caller over its own rate would use up its owner's."""
    narrow, wide = Bucket("token:1", 1 / 3600, 1), Bucket("owner:1", 1 / 3600, 2)
    assert take([narrow, wide]) == Verdict()
    for _ in range(5):
        assert take([narrow, wide]).bucket == 0
    assert take([wide]) == Verdict()
    assert take([wide]).bucket == 0


def test_buckets_in_redis_expire(broker: redis.Redis) -> None:
    """Nothing stays of a caller that has stopped."""
    SharedRequestRates(current_app._get_current_object(), "jobs").take(
        [Bucket("token:1", 2.0, 10)], timeout=5.0
    )
    [key] = broker.keys("*rate*")
    assert 0 < broker.ttl(key) <= 1


def test_without_redis_each_process_counts_alone(
    acme: Owner, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no request waits for Redis."""
    shared = SharedRequestRates(current_app._get_current_object(), "jobs")
    monkeypatch.setattr(shared._broker, "_resume_at", inf)
    monkeypatch.setattr(request_rates, "_shared", lambda: shared)
    request_rates._here._full_until.clear()
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_TOKEN_PER_MINUTE": 1}
    access = access_of(make_token("scene", scopes=["read"], owner=acme).token)
    began = time.monotonic()
    refuse_fast_caller(access)
    with pytest.raises(LimitExceeded):
        refuse_fast_caller(access)
    assert time.monotonic() - began < 3
