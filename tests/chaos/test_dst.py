"""Cron over all changes of 40 clocks in nine years (G13): `make chaos WHAT=dst`, with SAMPLE."""

import pytest

from tests.chaos.figures import amount, dice
from tests.jobs.schedules.clocks import EDGES, ZONES, changes, disagreements, some_expressions

SAMPLE = amount("SAMPLE", 20)


@pytest.mark.chaos
def test_dst() -> None:
    """At every change, due times are those that a clock finds which is stepped by the minute."""
    chance = dice(SAMPLE=SAMPLE)
    seen, wrong = 0, []
    for zone in ZONES:
        for change in changes(zone):
            wrong += disagreements(zone, change, [*EDGES, *some_expressions(chance, SAMPLE)])
            seen += 1
    print(f"{len(ZONES)} zones, {seen} changes, {seen * (len(EDGES) + SAMPLE):,} compared")
    assert wrong == []
