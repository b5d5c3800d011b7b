"""Rate limits of tokens, users and owners: counted in Redis, or here when Redis is away."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any, Final

from celery import current_app

from fleet import BrokerUnavailable, Bucket, RequestRates, SharedRequestRates, Verdict
from jobs.core.conf import setting
from jobs.core.errors import LimitExceeded
from jobs.models import ApiToken
from jobs.models.access import Access

TIMEOUT_SECONDS: Final = 0.1
"""Seconds that a request waits for Redis; after a failure, Redis is not asked for 2 seconds."""
BURST_SECONDS: Final = 1
"""A burst may have as many requests as the rate allows in this time."""

_here: Final = RequestRates()


@cache
def _shared() -> SharedRequestRates:
    return SharedRequestRates(current_app._get_current_object(), setting("JOBS_QUEUE"))


def refuse_fast_caller(access: Access) -> None:
    """Raise LimitExceeded if a token, a user, or the owner of a token makes too many requests."""
    buckets = _buckets(access.actor)
    verdict = _take(buckets)
    if verdict.wait_seconds:
        bucket = buckets[verdict.bucket]
        whose = bucket.name.partition(":")[0]
        limit = round(bucket.per_second * 60)
        raise LimitExceeded(
            f"{whose}_rate",
            f"this {whose} may make {limit:,} requests a minute",
            limit,
            max(1, math.ceil(verdict.wait_seconds)),
        )


def _take(buckets: list[Bucket]) -> Verdict:
    try:
        return _shared().take(buckets, timeout=TIMEOUT_SECONDS)
    except BrokerUnavailable:
        # Each process alone: the limit is then as many times higher as there are processes.
        return _here.take(buckets, now=time.monotonic())


def _buckets(actor: Any) -> list[Bucket]:
    caller = setting("API_TOKEN_PER_MINUTE")
    if not isinstance(actor, ApiToken):
        return [_bucket(f"user:{actor.pk}", caller)]
    made = [_bucket(f"token:{actor.pk}", caller)]
    if actor.owner_id is not None:
        made.append(_bucket(f"owner:{actor.owner_id}", setting("API_OWNER_PER_MINUTE")))
    return made


def _bucket(name: str, per_minute: int) -> Bucket:
    per_second = per_minute / 60
    return Bucket(name, per_second, max(1, math.ceil(per_second * BURST_SECONDS)))
