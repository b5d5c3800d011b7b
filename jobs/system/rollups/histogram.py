"""Histograms of seconds with buckets of equal relative width, as DDSketch has them. Pure.

Bucket `n` has the values above GROWTH^(n-1) and up to GROWTH^n. Its value is the one in between
that differs least, in proportion, from both limits. See Masson, Rim and Lee, "DDSketch: a fast and
fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

GROWTH: Final = 1.1
"""How much larger the limits of a bucket are than those of the one before it."""
RELATIVE_ERROR: Final = (GROWTH - 1) / (GROWTH + 1)
"""The largest difference of a percentile from the true one, as a part of it: 4.8 %."""
SHORTEST: Final = 0.001
"""Seconds. Shorter values count as these."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles in seconds. Each is right within RELATIVE_ERROR."""

    p50: float
    p95: float
    p99: float


def percentiles(counts: Mapping[int, int]) -> Percentiles | None:
    """Return the percentiles of the values in these buckets; None without a value."""
    if not sum(counts.values()):
        return None
    return Percentiles(*(percentile(counts, part) for part in (0.50, 0.95, 0.99)))


def percentile(counts: Mapping[int, int], part: float) -> float:
    """Return the smallest value that at least this part of all values does not exceed."""
    # Rounded: 0.95 * 100 is more than 95 in binary.
    left = math.ceil(round(part * sum(counts.values()), 6))
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return value_of(bucket)
    raise ValueError("There is no value in these buckets.")


def value_of(bucket: int) -> float:
    """Return the value of a bucket, in seconds."""
    return 2 * GROWTH**bucket / (GROWTH + 1)
