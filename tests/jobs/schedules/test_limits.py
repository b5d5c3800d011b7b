"""jobs/schedules/limits.py: bad schedules are refused by field, with the limit."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.errors import ScheduleError
from jobs.schedules import Schedule, checked, due_times, in_words

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
NAIVE = NOON.replace(tzinfo=None)
MINUTE = timedelta(minutes=1)


def cron(text: Any, **others: Any) -> Schedule:
    return Schedule("cron", cron=text, **others)


def every(minutes: Any, **others: Any) -> Schedule:
    return Schedule("interval", interval_minutes=minutes, **others)


def seconds(count: Any, **others: Any) -> Schedule:
    return Schedule("seconds", interval_seconds=count, **others)


def once(moment: Any, **others: Any) -> Schedule:
    return Schedule("once", once_at=moment, **others)


REFUSED: list[tuple[Schedule, str, str]] = [
    (Schedule("sometimes"), "schedule", "is none of manual, once, interval, seconds, cron"),
    (Schedule(None), "schedule", "is none of"),  # type: ignore[arg-type]
    # dates
    (cron("0 0 30 2 *"), "cron", "no date that exists"),
    (cron("0 0 31 4,6,9,11 *"), "cron", "no date that exists"),
    (cron("0 0 31 APR */2"), "cron", "no date that exists"),
    # fields
    (cron("* * * * * *"), "cron", "has 6 fields, five are wanted"),
    (cron("* * * * * *"), "cron", "use interval_seconds"),
    (cron("* * * *"), "cron", "has 4 fields"),
    (cron(""), "cron", "is required"),
    (cron("60 * * * *"), "cron", "minute has '60'; it takes 0-59"),
    (cron("* 24 * * *"), "cron", "hour has '24'; it takes 0-23"),
    (cron("* * 0 * *"), "cron", "day of month has '0'; it takes 1-31"),
    (cron("* * * 13 *"), "cron", "month has '13'; it takes 1-12"),
    (cron("* * * * 8"), "cron", "day of week has '8'; it takes 0-7"),
    (cron("* * * * FRI-MON"), "cron", "day of week has 'FRI-MON'"),
    (cron("1,,2 * * * *"), "cron", "minute has an empty term"),
    (cron("*/0 * * * *"), "cron", "steps above 0"),
    (cron("*/-5 * * * *"), "cron", "minute has '*/-5'"),
    (cron("*/90 * * * *"), "cron", "use interval_minutes"),
    (cron("\x00 * * * *"), "cron", "minute has '\\x00'"),
    (cron("\ud800 * * * *"), "cron", "minute has '\\ud800'"),
    (cron("٣ * * * *"), "cron", "minute has"),
    (cron("* * * * ²L"), "cron", "day of week has"),
    (cron(b"* * * * *"), "cron", "is text, not bytes"),
    # aliases
    (cron("@reboot"), "cron", "there are @hourly, @daily"),
    (cron("@every 5m"), "cron", "is no alias"),
    (cron("0 4\n* * *"), "cron", "is one line"),
    (cron("0 4\r\n* * *"), "cron", "is one line"),
    # bombs
    (cron("*/" + "9" * 190 + " * * * *"), "cron", "step of 9999"),
    (cron("1," * 5_000_000 + "1 * * * *"), "cron", "the limit is 200"),
    (cron(",".join("1" * 61) + " * * * *"), "cron", "minute has 61 terms, the limit is 60"),
    (cron("0-" + "9" * 190 + " * * * *"), "cron", "minute has '0-999"),
    (cron("*" + "/1" * 90 + " * * * *"), "cron", "minute has '*/1/1"),
    # zones
    (cron("@daily", zone="Europe/Berln"), "zone", "did you mean 'Europe/Berlin'?"),
    (cron("@daily", zone="CET/Nowhere"), "zone", "is no IANA time zone"),
    (cron("@daily", zone="localtime"), "zone", "is no IANA time zone"),
    (cron("@daily", zone="../../etc/passwd"), "zone", "is no IANA time zone"),
    (cron("@daily", zone="Europe/Berlin\x00"), "zone", "is no IANA time zone"),
    (cron("@daily", zone="x" * 1_000_000), "zone", "is no IANA time zone"),
    (cron("@daily", zone=None), "zone", "is text, not NoneType"),
    # intervals
    (every(None), "interval_minutes", "is required"),
    (every(0), "interval_minutes", "is from 1 to 525,600"),
    (every(525_601), "interval_minutes", "is from 1 to 525,600"),
    (every(10**100), "interval_minutes", "is from 1 to 525,600"),
    (every(True), "interval_minutes", "is a whole number, not bool"),
    (every(2.5), "interval_minutes", "is a whole number, not float"),
    (every("15"), "interval_minutes", "is a whole number, not str"),
    (seconds(0), "interval_seconds", "is from 1 to 86,400"),
    (seconds(120), "interval_seconds", "use interval_minutes=2"),
    # moments
    (once(None), "once_at", "is required"),
    (once(NAIVE), "once_at", "has no time zone"),
    (once("2026-06-01"), "once_at", "is a datetime, not str"),
    (once(NOON.date()), "once_at", "is a datetime, not date"),
    (once(datetime.max.replace(tzinfo=UTC)), "once_at", "is outside 1970 to 2199"),
    (once(datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))), "once_at", "is outside"),
    (every(5, start_at=NAIVE), "start_at", "has no time zone"),
    (every(5, start_at=NOON, end_at=NOON), "end_at", "must be later than start_at"),
    (cron("@daily", start_at=NOON, end_at=NOON - MINUTE), "end_at", "must be later"),
    # fields of another kind
    (cron("@daily", interval_minutes=5), "interval_minutes", "does not go with"),
    (cron("@daily", once_at=NOON), "once_at", "does not go with"),
    (every(5, cron="@daily"), "cron", "does not go with"),
    (every(5, interval_seconds=7), "interval_seconds", "does not go with"),
    (every(5, smooth=True), "smooth", "does not go with the schedule 'interval'"),
    (cron("@daily", smooth="yes"), "smooth", "is True or False"),
    (once(NOON, end_at=NOON), "end_at", "does not go with"),
    (Schedule("manual", start_at=NOON), "start_at", "does not go with"),
    (Schedule("manual", cron="@daily"), "cron", "does not go with"),
]


@pytest.mark.parametrize(("schedule", "field", "problem"), REFUSED)
def test_a_bad_schedule_is_refused(schedule: Schedule, field: str, problem: str) -> None:
    """The error names the field and what it may be, briefly, and comes at once."""
    spans = []
    for _ in range(3):
        began = perf_counter()
        with pytest.raises(ScheduleError) as raised:
            checked(schedule)
        spans.append(perf_counter() - began)
    assert raised.value.field == field
    assert problem in raised.value.problem
    assert len(str(raised.value)) < 250 and str(raised.value).isprintable()
    assert min(spans) < 0.05


ACCEPTED = [
    Schedule("manual"),
    Schedule("manual", zone="Asia/Kathmandu"),
    every(1),
    every(525_600, start_at=NOON, end_at=NOON + MINUTE, phase=37, shard=119),
    seconds(1),
    seconds(86_399, end_at=NOON),
    once(NOON, zone="Europe/Berlin", smooth=True),
    cron("0 0 29 2 *"),
    cron("0 0 29 2 */7"),
    cron("0 0 30 2 MON"),
    cron("0 0 * 2 MON#5"),
    cron("*/60 */24 */31 */12 *"),
    cron("0 0 L,15 * 5L", zone="America/Havana", smooth=True),
    cron("@annually"),
]


@pytest.mark.parametrize("schedule", ACCEPTED, ids=str)
def test_a_good_schedule_is_accepted(schedule: Schedule) -> None:
    """The limits themselves are inside; what is right already is not changed."""
    assert checked(schedule) == schedule


def test_the_stored_form_is_one() -> None:
    """Two ways to write an expression or a moment are stored alike."""
    assert checked(cron(" 0  0 * * mon\n")).cron == "0 0 * * MON"
    assert checked(cron("@Daily")).cron == "@daily"
    east = timezone(timedelta(hours=5, minutes=45))
    bounded = checked(every(5, start_at=NOON.astimezone(east)))
    assert bounded.start_at is not None and bounded.start_at.tzinfo is UTC


@given(st.datetimes(NAIVE, NAIVE + timedelta(days=1), timezones=st.just(UTC)))
def test_once_is_rounded_up_to_the_minute(moment: datetime) -> None:
    """Never earlier than was asked for, less than a minute later, on the minute."""
    rounded = checked(once(moment)).once_at
    assert rounded is not None
    assert timedelta(0) <= rounded - moment < MINUTE
    assert (rounded.second, rounded.microsecond) == (0, 0)


marks = st.sampled_from("0123456789*/,-LW#@ \x00")
texts = st.text(marks, max_size=30) | st.text(max_size=250)
terms = st.sampled_from(
    ["*", "0", "5", "*/2", "1-5", "2,4", "1-7/3", "3/2", "L", "LW", "5L", "1#2", "mon", "JAN", "31"]
)
fields = st.lists(st.lists(terms, min_size=1, max_size=4).map(",".join), min_size=5, max_size=5)
values = st.none() | st.integers() | texts | st.floats() | st.booleans() | st.datetimes()


@given(
    st.builds(
        Schedule,
        kind=st.sampled_from(["manual", "once", "interval", "seconds", "cron", "?"]),
        interval_minutes=values,
        interval_seconds=values,
        cron=values,
        zone=values,
        once_at=values,
        start_at=values,
        end_at=values,
        smooth=values,
    )
)
def test_whatever_is_given_is_refused_or_right(schedule: Schedule) -> None:
    """There is no third thing: no other error, and checking twice changes nothing."""
    accepted = []
    with suppress(ScheduleError):
        accepted.append(checked(schedule))
    assert all(checked(right) == right for right in accepted)


@given(texts | fields.map(" ".join))
def test_an_expression_is_refused_or_understood(text: str) -> None:
    """What is accepted has words and times; nothing else is raised for any text."""
    understood = []
    with suppress(ScheduleError):
        understood.append(checked(cron(text, zone="Europe/Berlin")))
    for schedule in understood:
        assert in_words(schedule)
        list(due_times(schedule, start=NOON, end=NOON + timedelta(days=2)))
        assert checked(schedule) == schedule
