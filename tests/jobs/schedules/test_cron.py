"""jobs/schedules/cron.py: the minutes of an expression, over changes of the clock (G13)."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules import cron_minutes
from tests.jobs.schedules.clocks import EDGES, ZONES, changes, disagreements, some_expressions

MINUTE = timedelta(minutes=1)
SAMPLE = 6

zones = st.sampled_from(ZONES)
expressions = st.sampled_from(EDGES) | st.integers(0, 10_000).map(
    lambda seed: some_expressions(Random(seed), 1)[0]
)


@pytest.mark.parametrize("zone", ZONES)
def test_changes_of_the_clock(zone: str) -> None:
    """Around one ahead and one back, due is what a clock finds that is stepped by the minute."""
    chance = Random(zone)
    found = changes(zone)
    pair = chance.choice(range(0, len(found), 2))
    for change in found[pair : pair + 2]:
        some = [*chance.sample(EDGES, SAMPLE), *some_expressions(chance, SAMPLE)]
        assert disagreements(zone, change, some) == []


@given(zones, expressions, st.data())
def test_minute_by_minute_it_is_the_same(zone: str, cron: str, data: st.DataObject) -> None:
    """A tick asks for one minute at a time, and gets what a walk over all of them finds."""
    change = data.draw(st.sampled_from(changes(zone)))
    start = change - 90 * MINUTE
    each = [start + number * MINUTE for number in range(180)]
    alone = [m for m in each if cron_minutes(cron, zone, start=m, end=m + MINUTE)]
    assert alone == cron_minutes(cron, zone, start=start, end=start + 180 * MINUTE)
