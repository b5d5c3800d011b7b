"""jobs/windows/rrule.py: the times of a rule, as dateutil finds them from the beginning."""

from datetime import datetime, timedelta
from itertools import dropwhile, takewhile
from time import perf_counter

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.core.errors import WindowError
from jobs.windows.rrule import first_two, wall_starts
from jobs.windows.rules import DAYS

STARTS = datetime(2024, 2, 29, 22, 30)  # a Thursday
DAY = timedelta(days=1)


def walls(rule: str, first: datetime, last: datetime, starts: datetime = STARTS) -> list[datetime]:
    return list(wall_starts(rule, starts, first=first, last=last))


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=DAILY;COUNT=40",
        "FREQ=DAILY;BYMONTH=2,3,12",
        "FREQ=DAILY;BYHOUR=1,22;BYMINUTE=0,30",
        "FREQ=DAILY;UNTIL=20260601T223000",
        "FREQ=WEEKLY",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TH;WKST=SU",
        "FREQ=MONTHLY",
        "FREQ=MONTHLY;BYMONTHDAY=29,-1,31",
        "FREQ=MONTHLY;BYDAY=5TH,-1FR;INTERVAL=5",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "FREQ=MONTHLY;BYDAY=TH;BYSETPOS=5,1;COUNT=12",
        "FREQ=YEARLY",
        "FREQ=YEARLY;BYMONTH=2,7;BYMONTHDAY=-1",
        "FREQ=YEARLY;BYDAY=9TH,-1SU",
        "FREQ=YEARLY;BYYEARDAY=60,-1",
        "FREQ=YEARLY;BYWEEKNO=9,30;BYDAY=TH",
    ],
)
def test_wherever_one_begins(rule: str) -> None:
    """Periods near the span asked for give what dateutil finds from the first one on."""
    whole = list(takewhile(lambda w: w.year < 2034, rrulestr(rule, dtstart=STARTS)))
    assert whole[0] == STARTS
    for days in (0, 1, 30, 365, 366, 700, 1461, 2000):
        first = STARTS + days * DAY
        last = first + 500 * DAY
        assert walls(rule, first, last) == [one for one in whole if first <= one < last]


@pytest.mark.parametrize("week_start", DAYS)
def test_weeks_begin_where_the_rule_says(week_start: str) -> None:
    """Which days are in the same week as the first occurrence, decides about every other week."""
    for number in range(7):
        starts = STARTS + number * DAY
        rule = f"FREQ=WEEKLY;INTERVAL=2;WKST={week_start};BYDAY=MO,SU,{DAYS[starts.weekday()]}"
        whole = list(takewhile(lambda w: w.year < 2025, rrulestr(rule, dtstart=starts)))
        for days in (0, 1, 6, 7, 20):
            first = starts + days * DAY
            found = walls(rule, first, datetime(2025, 1, 1), starts)
            assert found == [one for one in whole if one >= first]


@given(
    st.sampled_from(("DAILY", "WEEKLY", "MONTHLY", "YEARLY")),
    st.integers(1, 12),
    st.datetimes(datetime(1970, 1, 1), datetime(2030, 1, 1)),
    st.integers(0, 4_000),
)
def test_any_beginning(frequency: str, interval: int, starts: datetime, days: int) -> None:
    """The same for rules that leave everything to their first occurrence."""
    starts = starts.replace(microsecond=0)
    rule = f"FREQ={frequency};INTERVAL={interval}"
    assume(len(first_two(rule, starts)) == 2)
    first = starts + days * DAY
    last = first + 800 * DAY
    found = dropwhile(lambda w: w < first, rrulestr(rule, dtstart=starts))
    assert walls(rule, first, last, starts) == list(takewhile(lambda w: w < last, found))


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=MONTHLY;BYDAY=TH;BYSETPOS=6",
        "FREQ=DAILY;INTERVAL=7;BYDAY=FR",
        "FREQ=YEARLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=TH",
        "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;BYMONTH=6",
    ],
)
def test_what_does_not_come_is_refused_soon(rule: str) -> None:
    """dateutil would look for it until the year 9999; also when nobody has checked the rule."""
    began = perf_counter()
    with pytest.raises(WindowError) as raised:
        walls(rule, STARTS, STARTS + 900 * DAY)
    assert raised.value.field == "rule" and perf_counter() - began < 50
