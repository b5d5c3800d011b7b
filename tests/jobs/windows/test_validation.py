"""jobs/windows/validation.py: what is refused of a window, field by field."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobs.core.errors import WindowError
from jobs.windows import Effect, Entry, Span, checked, occurrences
from jobs.windows.validation import MOST_DATES
from tests.jobs.windows.calendars import a_change, some_calendars

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SATURDAY = datetime(2026, 6, 6, 22)
NIGHT = Entry(Effect.WINDOW, SATURDAY, 8 * HOUR, "Europe/Berlin", "FREQ=WEEKLY;BYDAY=SA")
ONCE = replace(NIGHT, rule="")
MOMENT = SATURDAY.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "changes", "problem"),
    [
        ("effect", {"effect": "closed"}, "is one of window, freeze"),
        ("zone", {"zone": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
        ("zone", {"zone": "localtime"}, "is no IANA time zone"),
        ("zone", {"zone": None}, "is text, not NoneType"),
        ("starts", {"starts": MOMENT}, "has a time zone"),
        ("starts", {"starts": "2026"}, "is a datetime, not str"),
        ("starts", {"starts": datetime(2100, 1, 1)}, "is outside 1970 to 2099"),
        ("starts", {"starts": SATURDAY + DAY}, "the first one from then on is 2026-06-13 22:00"),
        ("starts", {"starts": SATURDAY.replace(microsecond=5)}, "fractions of a second"),
        ("duration", {"duration": timedelta(0)}, "is from 1 second to 31 days"),
        ("duration", {"duration": -HOUR}, "is from 1 second to 31 days"),
        ("duration", {"duration": 31 * DAY + HOUR}, "is from 1 second to 31 days"),
        ("duration", {"duration": 8}, "is a timedelta, not int"),
        ("duration", {"rule": "FREQ=HOURLY"}, "is longer than from one start to the next, 1:00"),
        ("rule", {"rule": "FREQ=SECONDLY"}, "FREQ is one of"),
        ("rule", {"rule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}, "means no date"),
        ("rule", {"rule": "FREQ=WEEKLY;UNTIL=20260604"}, "an UNTIL before the first"),
        ("rule", {"rule": "FREQ=WEEKLY;UNTIL=20260606T215959"}, "an UNTIL before the first"),
        ("rule", {"rule": "FREQ=WEEKLY;UNTIL=20260606T195959Z"}, "an UNTIL before the first"),
        ("rule", {"rule": "FREQ=HOURLY;UNTIL=20260606T195959Z"}, "an UNTIL before the first"),
        ("excluded", {"excluded": (SATURDAY,), "rule": ""}, "leaves no occurrence"),
        (
            "excluded",
            {"excluded": (SATURDAY, SATURDAY + 7 * DAY), "rule": "FREQ=WEEKLY;COUNT=2"},
            "leaves no occurrence",
        ),
        ("excluded", {"excluded": (MOMENT,)}, "has a time zone"),
        ("excluded", {"excluded": "20260606"}, "is a tuple, not str"),
        ("added", {"added": (SATURDAY,) * (MOST_DATES + 1)}, "5,001 elements, the limit is 5,000"),
        ("valid_from", {"valid_from": SATURDAY}, "has no time zone"),
        ("valid_until", {"valid_from": MOMENT, "valid_until": MOMENT}, "later than valid_from"),
        ("approved", {"approved": (Span(MOMENT, MOMENT),)}, "does not end after its start"),
        ("approved", {"approved": ((MOMENT, MOMENT),)}, "it takes Spans"),
        ("approved_starts", {"approved_starts": frozenset({SATURDAY})}, "has no time zone"),
        ("reason", {"reason": "x" * 1_001}, "is text of up to 1,000 characters"),
        (
            "starts",
            {"starts": datetime(2026, 3, 29, 2, 10), "duration": HOUR / 2, "rule": ""},
            "lies in a gap of the clock",
        ),
    ],
)
def test_refused(field: str, changes: dict[str, Any], problem: str) -> None:
    """One error, by the field's name, with the limit."""
    with pytest.raises(WindowError) as raised:
        checked(replace(NIGHT, **changes))
    assert (raised.value.field, problem in raised.value.problem) == (field, True), raised.value


def test_what_is_stored() -> None:
    """Moments in UTC, dates in order and once, one way to write a rule, no zone is UTC."""
    entry = replace(
        NIGHT,
        zone="",
        rule=" freq=weekly;byday=sa",
        excluded=(SATURDAY + 21 * DAY, SATURDAY + 7 * DAY, SATURDAY + 7 * DAY),
        valid_from=MOMENT.astimezone(ZoneInfo("Asia/Tokyo")),
        approved=(Span(MOMENT + DAY, MOMENT + 2 * DAY), Span(MOMENT, MOMENT + HOUR)),
    )
    found = checked(entry)
    assert (found.zone, found.rule) == ("UTC", "FREQ=WEEKLY;BYDAY=SA")
    assert found.excluded == (SATURDAY + 7 * DAY, SATURDAY + 21 * DAY)
    assert found.valid_from == MOMENT and found.valid_from.tzinfo is UTC
    assert found.approved is not None and found.approved[0].start == MOMENT
    assert checked(found) == found


def test_limits_are_included() -> None:
    """The longest and the shortest are taken, and what touches its limits."""
    assert checked(replace(ONCE, duration=timedelta(seconds=1)))
    assert checked(replace(NIGHT, duration=31 * DAY))
    assert checked(replace(NIGHT, rule="FREQ=WEEKLY;UNTIL=20260606T200000Z"))
    assert checked(replace(NIGHT, rule="FREQ=HOURLY;INTERVAL=8"))
    assert checked(replace(ONCE, starts=SATURDAY.replace(microsecond=5)))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_taken_can_be_followed(seed: int) -> None:
    """An entry that passes has occurrences, or is bounded by what somebody asked for."""
    chance = Random(seed)
    zone, change = a_change(chance)
    for calendar in some_calendars(chance, change, zone):
        for entry in calendar.entries:
            whole = replace(
                entry, approved=None, approved_starts=None, valid_from=None, valid_until=None
            )
            first = entry.starts.replace(tzinfo=UTC)
            found = occurrences(whole, start=first - 2 * DAY, end=first + 8 * 366 * DAY)
            assert next(found, None) is not None
