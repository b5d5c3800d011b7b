"""Rates of requests that all web processes count together, in Redis: one call for each request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from celery import Celery
from redis.commands.core import Script

from fleet.broker.broker import Broker
from fleet.fairness.request_rate import Bucket, Verdict
from fleet.keys import rate_key

_SCRIPT: Final = Path(__file__).with_name("request_rate.lua").read_text()


class SharedRequestRates:
    """The buckets of an installation, under the keys of one queue.

    It has its own connection, whose time limit is shorter than that of a connection that publishes.
    """

    def __init__(self, app: Celery, queue: str) -> None:
        self._broker = Broker(app)
        self._queue = queue
        self._script: Script | None = None

    def take(self, buckets: Sequence[Bucket], *, timeout: float) -> Verdict:
        """Count a request in all buckets, or in none if one is full; raise BrokerUnavailable."""
        keys = [rate_key(self._queue, bucket.name) for bucket in buckets]
        limits = [text for one in buckets for text in (one.per_second, one.burst)]
        with self._broker.client(timeout=timeout) as client:
            # redis-py computes the digest here. A server gets the text once, then digests.
            script = self._script = self._script or client.register_script(_SCRIPT)
            microseconds, index = script(keys=keys, args=limits, client=client)
        return Verdict(microseconds / 1_000_000, index)
