"""jobs/windows: calendars made by chance, beside a clock that is stepped by the minute.

All changes of all zones, with more calendars, are in tests/chaos/test_window_grid.py.
"""

from random import Random

import pytest

from tests.jobs.schedules.clocks import ZONES, changes
from tests.jobs.windows.calendars import disagreements, some_calendars


@pytest.mark.parametrize("count", [40, pytest.param(80, marks=pytest.mark.proof)])
@pytest.mark.parametrize("part", range(4))
def test_changes_of_the_clock(part: int, count: int) -> None:
    """Around a change, what is open is what the oracle finds: of all zones, `count` calendars."""
    chance = Random(part)
    seen = 0
    zones = [zone for number, zone in enumerate(ZONES) if number % 4 == part]
    while seen < count // 4:
        for zone in zones:
            change = chance.choice(changes(zone))
            calendars = some_calendars(chance, change, zone)
            assert disagreements(calendars, change) == []
            seen += len(calendars)
