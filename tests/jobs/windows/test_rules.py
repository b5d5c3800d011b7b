"""jobs/windows/rules.py: a rule's text, and what is refused of it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import WindowError
from jobs.windows.rules import LONGEST, read_rule

SIXTY = ",".join(map(str, range(60)))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("FREQ=SECONDLY", "FREQ is one of YEARLY, MONTHLY"),
        ("INTERVAL=2", "has no FREQ"),
        ("FREQ=DAILY;FREQ=DAILY", "has FREQ twice"),
        ("FREQ=DAILY;BYEASTER=0", "'BYEASTER' is no part"),
        ("FREQ=DAILY;DTSTART=20260101", "'DTSTART' is no part"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20260101", "has COUNT and UNTIL"),
        ("FREQ=DAILY;COUNT=0", "COUNT is from 1 to 10,000"),
        ("FREQ=DAILY;COUNT=10001", "COUNT is from 1 to 10,000"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL is from 1 to 1,000"),
        ("FREQ=DAILY;INTERVAL=١", "INTERVAL is from 1 to 1,000"),
        ("FREQ=MINUTELY;INTERVAL=10081", "INTERVAL is from 1 to 10,080"),
        ("FREQ=DAILY;UNTIL=20260230", "no date that exists"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL is 20261231"),
        ("FREQ=DAILY;BYMONTH=13", "BYMONTH has '13'; it takes 1 to 12"),
        ("FREQ=DAILY;BYMONTHDAY=0", "it takes 1 to 31 or -31 to -1"),
        ("FREQ=DAILY;BYHOUR=", "BYHOUR has ''"),
        ("FREQ=DAILY;BYHOUR=-1", "it takes 0 to 23"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY has 'XX'"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY has '0MO'"),
        ("FREQ=WEEKLY;WKST=1", "WKST is one of MO"),
        ("FREQ=WEEKLY;BYDAY=2SA", "a numbered BYDAY"),
        ("FREQ=MONTHLY;BYDAY=53MO", "a numbered BYDAY of a month is at most 5"),
        ("FREQ=MONTHLY;BYDAY=MO,-6TU", "a numbered BYDAY of a month is at most 5"),
        ("FREQ=YEARLY;BYMONTH=2;BYDAY=6MO", "a numbered BYDAY of a month is at most 5"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY does not go with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYWEEKNO=1;BYDAY=MO", "go with FREQ=YEARLY only"),
        ("FREQ=YEARLY;BYWEEKNO=1", "BYWEEKNO needs BYDAY"),
        ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS needs another BY part"),
        ("FREQ=HOURLY;BYDAY=MO", "HOURLY takes no BY parts"),
        ("FREQ=MINUTELY;BYHOUR=2", "use FREQ=DAILY with BYHOUR"),
        (f"FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE={SIXTY}", "makes 300 times a day, the limit is"),
        (f"FREQ=DAILY;BYMINUTE={SIXTY};BYSECOND={SIXTY}", "makes 3,600 times a day"),
        ("FREQ=DAILY" + ";" * LONGEST, "characters, the limit is 500"),
        ("nonsense", "'NONSENSE' is no part"),
    ],
)
def test_refused(rule: str, problem: str) -> None:
    """Each part by itself and beside the others; the text says what is allowed."""
    with pytest.raises(WindowError) as raised:
        read_rule(rule)
    assert raised.value.field == "rule" and problem in raised.value.problem


@given(st.text("FREQ=DAILYWKMON;BYTUSP0123456789,-+ZTC\n\0é", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but the one error comes out, whatever is written."""
    with suppress(WindowError):
        read_rule(f"FREQ=DAILY;{text}")
