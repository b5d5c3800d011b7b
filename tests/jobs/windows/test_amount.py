"""jobs/windows/amount.py: a calendar with too many openings is noticed, at a bounded cost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import process_time

import pytest

from jobs.windows import Effect, Entry, first_beyond

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FIVE = Entry(
    Effect.WINDOW,
    starts=datetime(2026, 1, 1),
    duration=timedelta(minutes=1),
    zone="UTC",
    rule="FREQ=MINUTELY;INTERVAL=5",
)
MINUTES = ",".join(map(str, range(0, 60, 5)))
HOURS = ",".join(map(str, range(24)))


def test_one_in_five_minutes_is_within_the_limit() -> None:
    """Two such rules are not, and the second one is named."""
    assert first_beyond([FIVE], after=NOW) is None
    second = replace(FIVE, zone="Europe/Berlin")
    assert first_beyond([FIVE, second], after=NOW) is second


@pytest.mark.parametrize(
    "entry",
    [
        replace(FIVE, rule="FREQ=MINUTELY"),
        # Later, in the busiest month of a year, or not agreed to: it would count one day.
        replace(FIVE, rule="FREQ=MINUTELY", starts=datetime(2031, 1, 1)),
        replace(FIVE, rule="FREQ=MINUTELY", valid_from=NOW + timedelta(days=400)),
        replace(FIVE, rule="FREQ=MINUTELY", approved=()),
    ],
)
def test_a_rule_is_judged_by_its_busiest_time(entry: Entry) -> None:
    """Neither a late start nor a missing approval hides what it makes."""
    assert first_beyond([entry], after=NOW) is entry


def test_bursts_of_a_yearly_rule_count() -> None:
    """Two that are busy in July only are too many, in November too."""
    burst = replace(
        FIVE,
        starts=datetime(2026, 7, 1),
        rule=f"FREQ=YEARLY;BYMONTH=7,8;BYMONTHDAY=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,"
        f"20,21,22,23,24,25,26,27,28,29,30,31;BYHOUR={HOURS};BYMINUTE={MINUTES}",
    )
    assert first_beyond([burst], after=NOW) is None
    assert first_beyond([burst, burst, burst], after=NOW) is burst


def test_single_dates_count_where_they_lie() -> None:
    """Too many on near days are refused, as many over decades are not."""
    near = tuple(NOW.replace(tzinfo=None) + timedelta(minutes=each) for each in range(5_000))
    far = tuple(NOW.replace(tzinfo=None) + timedelta(days=each) for each in range(5_000))
    once = replace(FIVE, rule="", starts=datetime(2027, 1, 1))
    crowd = [replace(once, added=near)] * 5
    assert first_beyond(crowd, after=NOW) is not None
    assert first_beyond([replace(once, added=far)] * 5, after=NOW) is None


def test_what_is_over_does_not_count() -> None:
    """A rule of the past leaves room for others."""
    over = replace(FIVE, rule="FREQ=MINUTELY;UNTIL=20260201T000000Z")
    counted = replace(FIVE, rule="FREQ=MINUTELY;COUNT=10000")
    assert first_beyond([over, counted, FIVE], after=NOW) is None


def test_counting_is_cheap_however_many_there_are() -> None:
    """A thousand rules cost no more than the limit does."""
    began = process_time()
    assert first_beyond([replace(FIVE, rule="FREQ=MINUTELY")] * 1_000, after=NOW) is not None
    daily = replace(FIVE, rule=f"FREQ=DAILY;BYHOUR={HOURS};BYMINUTE={MINUTES}")
    assert first_beyond([daily] * 1_000, after=NOW) is not None
    assert process_time() - began < 5
