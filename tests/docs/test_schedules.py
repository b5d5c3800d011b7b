"""docs/use/schedules.md: its changed clocks, aliases and reasons are those of the code."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.schedules import cron_minutes
from tests.docs.pages import code_words, read, table

PAGE = read("docs/use/schedules.md")
CLOCKS = table(PAGE, after="## When clocks are changed")


@pytest.mark.parametrize("row", CLOCKS, ids=lambda row: " ".join(row[:3]))
def test_examples_of_changed_clocks(row: list[str]) -> None:
    """Each example runs at these times of its day, by its clock and in UTC."""
    [cron], [zone], [day] = map(code_words, row[:3])
    place = ZoneInfo(zone)
    start = datetime.fromisoformat(day).replace(tzinfo=place)
    end = start + timedelta(days=1)  # by the clock: 23, 24 or 25 hours
    found = cron_minutes(cron, zone, start=start.astimezone(UTC), end=end.astimezone(UTC))
    here = " ".join(f"{moment.astimezone(place):%H:%M}" for moment in found)
    assert [here or "never", " ".join(f"{m:%H:%M}" for m in found) or "never"] == row[3:]
