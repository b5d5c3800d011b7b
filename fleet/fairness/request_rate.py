"""Rates of requests, in plain Python: the generic cell rate algorithm (GCRA). Pure.

A bucket stores one time: until when the requests that were let through fill it at its rate. The
same algorithm in Redis is `fleet/broker/request_rate.lua`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_BUCKETS: Final = 10_000
"""Buckets in memory, beyond which those that are empty again are removed."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Requests of one caller: `per_second` on average, `burst` at once."""

    name: str
    per_second: float
    burst: int


class Verdict(NamedTuple):
    """The answer to one request."""

    wait_seconds: float = 0.0
    """How long to wait before the next try; 0: the request is let through."""
    bucket: int = -1
    """Which bucket is full."""


@dataclass(slots=True)
class RequestRates:
    """The buckets of one process."""

    _full_until: dict[str, float] = field(default_factory=dict)

    def take(self, buckets: Sequence[Bucket], *, now: float) -> Verdict:
        """Count a request in all buckets, or in none if one of them is full."""
        taken = {}
        for index, bucket in enumerate(buckets):
            start = max(self._full_until.get(bucket.name, now), now)
            wait = start - now - (bucket.burst - 1) / bucket.per_second
            # A rounding error of the sums is no reason to wait.
            if wait > 1e-6:
                return Verdict(wait, index)
            taken[bucket.name] = start + 1 / bucket.per_second
        if len(self._full_until) > MOST_BUCKETS:
            self._full_until = {
                name: until for name, until in self._full_until.items() if until > now
            }
        self._full_until.update(taken)
        return Verdict()
