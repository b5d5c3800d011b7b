"""jobs/schedules/phases.py: slots, and interval jobs spread evenly over them."""

from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules import place

intervals = st.integers(1, 525_600)


@given(st.integers(0, 2**62), intervals)
def test_a_place_is_inside_its_interval(number: int, interval: int) -> None:
    """Whatever the number: a whole minute below the interval, and one of 120 shards."""
    phase, shard = place(number, interval_minutes=interval)
    assert 0 <= phase < interval
    assert 0 <= shard < 120


@given(st.integers(0, 10**6), st.integers(2, 400), st.integers(1, 1440))
def test_any_run_of_numbers_is_spread_evenly(first: int, size: int, interval: int) -> None:
    """No two neighbours of a bulk are further apart than three times the mean.

    The golden ratio's gaps have at most three lengths (Steinhaus), of which the longest is below
    2.7 times the mean.
    """
    whole = interval * 120
    places = (place(n, interval_minutes=interval) for n in range(first, first + size))
    slots = sorted(phase * 120 + shard for phase, shard in places)
    gaps = [after - before for before, after in zip(slots, [*slots[1:], slots[0] + whole])]  # noqa: B905
    assert max(gaps) <= 2.7 * whole / size + 2
