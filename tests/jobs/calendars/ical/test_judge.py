"""jobs/ical beside another reader: recurring-ical-events, which shares nothing with our arithmetic.

It reads DTSTART beside its rule, a time in a gap of the clock and elapsed lengths as programs do;
here are files in which all agree.
"""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.calendars.ical import IcalError
from jobs.windows import occurrences
from tests.jobs.calendars.ical.samples import SAMPLES, ZONE, calendar, event, reading

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 7, 1, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "UTC")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

starts = st.datetimes(
    min_value=datetime.fromisoformat("2026-01-05"), max_value=datetime.fromisoformat("2026-12-20")
).map(lambda at: at.replace(hour=max(at.hour, 4), minute=at.minute // 15 * 15, second=0))
rules = st.one_of(
    st.builds("FREQ=DAILY;INTERVAL={};COUNT={}".format, st.integers(1, 40), st.integers(1, 60)),
    st.builds("FREQ=WEEKLY;INTERVAL={}".format, st.integers(1, 5)),
    st.builds("FREQ=MONTHLY;BYDAY={}{}".format, st.sampled_from([1, 2, -1]), st.sampled_from(DAYS)),
    st.builds("FREQ=MONTHLY;UNTIL=2026{:02}28T120000Z".format, st.integers(1, 12)),
    st.just("FREQ=YEARLY"),
)


def ours(data: bytes) -> list[tuple[datetime, datetime]]:
    found = (
        (span.start, span.end)
        for one in reading(data).windows
        for span in occurrences(one.entry, start=START, end=END)
    )
    return sorted(found)


def theirs(data: bytes) -> list[tuple[datetime, datetime]]:
    read = icalendar.Calendar.from_ical(data)
    assert isinstance(read, icalendar.Calendar)
    # By our spans: it takes an event of the day before for one that ends at midnight.
    events = recurring_ical_events.of(read).between(START, END)
    found = (
        (moment(one["DTSTART"].dt), moment(one["DTEND"].dt))
        for one in events
        if one.get("STATUS") != "CANCELLED"
    )
    return sorted(one for one in found if one[1] > START and one[0] < END)


def moment(value: object) -> datetime:
    """Return when it is: days and times without a zone are those of the owner."""
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())  # type: ignore[arg-type]
    return (value if value.tzinfo else value.replace(tzinfo=ZoneInfo(ZONE))).astimezone(UTC)


def line(name: str, at: datetime, zone: str) -> str:
    """Return a line with a time by the clock of a zone."""
    text = f"{at:%Y%m%dT%H%M%S}"
    return f"{name}:{text}Z" if zone == "UTC" else f"{name};TZID={zone}:{text}"


def test_samples_are_read_alike() -> None:
    """Files of three programs: the same occurrences for a year and a half."""
    for sample in SAMPLES.values():
        data = sample.replace("\n", "\r\n").encode()
        assert ours(data) == theirs(data)
        assert ours(data)


@given(
    start=starts,
    hours=st.integers(1, 30),
    rule=rules,
    zone=st.sampled_from(ZONES),
    out=st.sets(st.integers(0, 5), max_size=3),
    moved=st.integers(0, 5),
    by=st.integers(-20, 20),
)
def test_series_are_read_alike(
    *, start: datetime, hours: int, rule: str, zone: str, out: set[int], moved: int, by: int
) -> None:
    """With dates taken out and one occurrence moved, in four zones, by any rule."""
    length = timedelta(hours=hours)
    assume((start + length).hour >= 4)
    series = [line("DTSTART", start, zone), line("DTEND", start + length, zone)]
    try:
        whole = [one.entry for one in reading(calendar(event(*series, f"RRULE:{rule}"))).windows]
    except IcalError:
        # Of a rule that ends before it begins.
        assume(condition=False)
    # Of a start beside its rule programs make different things.
    start = whole[0].starts
    series = [line("DTSTART", start, zone), line("DTEND", start + length, zone), f"RRULE:{rule}"]
    walls = [
        span.start.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        for span in occurrences(whole[0], start=START, end=END)
    ][:6]
    series += [line("EXDATE", walls[number], zone) for number in out if number < len(walls)]
    events = [event(*series)]
    if moved < len(walls) and moved not in out:
        at = walls[moved] + timedelta(days=by)
        events.append(
            event(
                line("RECURRENCE-ID", walls[moved], zone),
                line("DTSTART", at, zone),
                line("DTEND", at + timedelta(hours=2), zone),
            )
        )
    data = calendar(*events) + b"\r\n"
    assert ours(data) == theirs(data), data.decode()
