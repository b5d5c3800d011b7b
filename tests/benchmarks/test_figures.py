"""The arithmetic of the benchmarks, on numbers that can be checked by hand."""

import pytest

from tests.benchmarks.figures import (
    Ran,
    contended,
    ideal_ends,
    jain,
    percentile,
    received,
    share_error,
)


def test_percentile_is_a_value_that_was_measured() -> None:
    """The p99 of 300 is the third from above; the p50 of an odd count is the median."""
    values = [float(value) for value in range(300, 0, -1)]
    assert percentile(values, 99) == 297
    assert percentile(values, 100) == 300
    assert percentile([5, 1, 3], 50) == 3
    assert percentile([7], 50) == 7


def test_jain_is_one_for_equals_and_a_part_for_a_single_winner() -> None:
    """Its two ends, and one value between them."""
    assert jain([5, 5, 5]) == 1
    assert jain([9, 0, 0]) == pytest.approx(1 / 3)
    assert jain([1, 2]) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="nothing was shared"):
        jain([0, 0])


def test_share_error_is_that_of_the_owner_who_is_worst_off() -> None:
    """10 % too little for the owner of weight 1 is an error of 10 %, however small that is."""
    weights = {"a": 1.0, "b": 3.0}
    assert share_error({"a": 1, "b": 3}, weights) == pytest.approx(0)
    assert share_error({"a": 0.9, "b": 3.1}, weights) == pytest.approx(0.1)
    assert share_error({"b": 4}, weights) == pytest.approx(1)


def test_small_owner_behind_a_large_one_has_half_of_the_slots() -> None:
    """4 runs of 100 ms on half of 4 slots take 200 ms; the large owner loses just that."""
    ends = ideal_ends({"large": 300.0, "small": 0.4}, slots=4)
    assert ends["small"] == pytest.approx(0.2)
    assert ends["large"] == pytest.approx(300.4 / 4)


def test_shares_count_only_while_everyone_has_work() -> None:
    """From the first start to the last start of the owner who runs out first."""
    runs = [Ran("a", 0, 1), Ran("a", 1, 2), Ran("b", 0, 3), Ran("b", 3, 6)]
    assert contended(runs) == (0, 1)
    assert received(runs, contended(runs)) == {"a": 1, "b": 1}
    assert received(runs, (0.5, 4)) == {"a": 1.5, "b": 3.5}
