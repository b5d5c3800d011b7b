"""jobs/windows: calendars made by chance, beside a clock that is stepped by the minute.

All changes of all zones, with more calendars, are in tests/chaos/test_window_grid.py.
"""

from random import Random

import pytest

from tests.jobs.schedules.clocks import ZONES, changes
from tests.jobs.windows.calendars import disagreements, some_calendars

CALENDARS = 40


@pytest.mark.parametrize("part", range(4))
def test_changes_of_the_clock(part: int) -> None:
    """Around a change, what is open is what the oracle finds: of all zones."""
    chance = Random(part)
    seen = 0
    zones = [zone for number, zone in enumerate(ZONES) if number % 4 == part]
    while seen < CALENDARS // 4:
        for zone in zones:
            change = chance.choice(changes(zone))
            calendars = some_calendars(chance, change, zone)
            assert disagreements(calendars, change) == []
            seen += len(calendars)
