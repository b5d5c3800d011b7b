"""Histograms of seconds with buckets of equal relative width, as DDSketch has them. Pure.

Bucket `n` has the values above GROWTH^(n-1) and up to GROWTH^n. Its value is the one in between
that differs least, in proportion, from both limits. See Masson, Rim and Lee, "DDSketch: a fast and
fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

GROWTH: Final = 1.1
"""How much larger the limits of a bucket are than those of the one before it."""
RELATIVE_ERROR: Final = (GROWTH - 1) / (GROWTH + 1)
"""The largest difference of a percentile from the true one, as a part of it: 4.8 %."""
SHORTEST: Final = 0.001
"""Seconds. Shorter values count as these."""
PARTS: Final = (0.50, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles in seconds. Each is right within RELATIVE_ERROR."""

    p50: float
    p95: float
    p99: float


def percentiles(counts: Mapping[int, int]) -> Percentiles | None:
    """Return the percentiles of the values in these buckets; None without a value."""
    buckets = sorted(counts)
    return percentiles_of(buckets, [counts[bucket] for bucket in buckets])


def percentiles_of(buckets: Sequence[int], counts: Sequence[int]) -> Percentiles | None:
    """Return the same of buckets in rising order and their counts, as rollups have them."""
    if not any(counts):
        return None
    up_to = list(accumulate(counts))
    # Rounded: 0.95 * 100 is more than 95 in binary.
    ranks = [math.ceil(round(part * up_to[-1], 6)) for part in PARTS]
    return Percentiles(*(value_of(buckets[bisect_left(up_to, rank)]) for rank in ranks))


def value_of(bucket: int) -> float:
    """Return the value of a bucket, in seconds."""
    return 2 * GROWTH**bucket / (GROWTH + 1)
