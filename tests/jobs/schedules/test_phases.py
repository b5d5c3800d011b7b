"""jobs/schedules/phases.py: slots, and interval jobs spread evenly over them."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from random import Random
from statistics import fmean, pstdev

from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules import place

MIX = {1: 0.02, 2: 0.03, 5: 0.20, 10: 0.15, 15: 0.25, 60: 0.25, 360: 0.05, 1440: 0.05}
"""Parts of 1 of the jobs by their interval in minutes."""

JOBS = 100_000
HOUR = 3600
Place = tuple[int, int]

moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
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


def load_by_second(places: dict[int, list[Place]], *, hour: int) -> list[int]:
    """Return how many jobs are due in each second of an hour of a day."""
    load = [0] * HOUR
    for interval, given_places in places.items():
        due = Counter(phase * 60 + shard // 2 for phase, shard in given_places)
        for second in range(HOUR):
            load[second] += due[(hour * HOUR + second) % (interval * 60)]
    return load


def variation(places: dict[int, list[Place]]) -> float:
    """Return the coefficient of variation of the load per second, the worst of five hours."""
    loads = (load_by_second(places, hour=hour) for hour in range(0, 24, 5))
    return max(pstdev(load) / fmean(load) for load in loads)


def placed(draw: Callable[[int], Place]) -> dict[int, list[Place]]:
    """Return the places of all jobs of the mix, each as it is drawn for its interval."""
    return {n: [draw(n) for _ in range(round(JOBS * part))] for n, part in MIX.items()}


def test_the_load_of_a_busy_hour_is_even() -> None:
    """100,000 jobs of the mix: the load per second varies by a tenth of its mean, at the most."""
    chance = Random(5)
    numbers: dict[int, Iterator[int]] = {n: count(1) for n in MIX}
    even = variation(placed(lambda n: place(next(numbers[n]), interval_minutes=n)))
    by_chance = variation(placed(lambda n: (chance.randrange(n), chance.randrange(120))))
    none = variation(placed(lambda _: (0, 0)))
    print(f"\nload per second varies by {even:.3f} of its mean,", end=" ")
    print(f"with random phases by {by_chance:.3f}, without phases by {none:.1f}")
    assert even <= 0.1
    assert even < by_chance < none
