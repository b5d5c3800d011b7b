"""jobs/system/rollups/histogram.py: percentiles from buckets are right within RELATIVE_ERROR."""

import math
from collections import Counter
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobs.system.rollups.histogram import (
    GROWTH,
    PARTS,
    RELATIVE_ERROR,
    Percentiles,
    percentiles,
    value_of,
)

SECONDS = some.floats(min_value=0.001, max_value=30 * 86_400)


def bucket_of(seconds: float) -> int:
    """Return what rollup_minute.sql computes."""
    return math.ceil(math.log(seconds) / math.log(GROWTH))


@given(some.lists(SECONDS, min_size=1, max_size=50))
def test_a_percentile_is_near_the_true_one(values: list[float]) -> None:
    """The true one is a value that at least this part of the values does not exceed."""
    found = percentiles(Counter(map(bucket_of, values)))
    assert found is not None
    for part, near in zip(PARTS, astuple(found), strict=True):
        true = sorted(values)[math.ceil(round(part * len(values), 6)) - 1]
        assert abs(near - true) <= true * RELATIVE_ERROR * (1 + 1e-9)


def test_95_of_100_values_are_95_percent() -> None:
    """Binary fractions do not take the next value."""
    counts = {0: 95, 50: 5}
    assert percentiles(counts) == Percentiles(value_of(0), value_of(0), value_of(50))


@pytest.mark.parametrize("counts", [{}, {3: 0}])
def test_without_values_there_is_no_percentile(counts: dict[int, int]) -> None:
    """It is not zero."""
    assert percentiles(counts) is None
