"""Windows over all changes of 40 clocks in nine years: `make chaos WHAT=window_grid`."""

import pytest

from tests.chaos.figures import amount, dice
from tests.jobs.schedules.clocks import ZONES, changes
from tests.jobs.windows.calendars import disagreements, some_calendars

SAMPLE = amount("SAMPLE", 2)


@pytest.mark.chaos
def test_window_grid() -> None:
    """At every change, the windows open when a clock that is stepped by the minute says so."""
    chance = dice(SAMPLE=SAMPLE)
    places, seen, wrong = 0, 0, []
    for zone in ZONES:
        for change in changes(zone):
            places += 1
            for _ in range(SAMPLE):
                calendars = some_calendars(chance, change, zone)
                seen += len(calendars)
                wrong += disagreements(calendars, change)
    print(f"{len(ZONES)} zones, {places} changes, {seen:,} calendars compared")
    assert wrong == []
