"""jobs/ical and bytes by chance: a reading or an IcalError, and soon."""

import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.calendars.ical import SIZE_LIMIT, IcalError
from jobs.windows import checked
from tests.jobs.calendars.ical.samples import SAMPLES, calendar, event, reading

WORDS = (
    *(b"BEGIN:", b"END:", b"VEVENT", b"VCALENDAR", b"DTSTART", b"RRULE:FREQ=", b"EXDATE:", b"Z"),
    *(b";TZID=", b'"', b":", b"\r\n ", b"\n", b"\xff", b"\xef\xbb\xbf", b"\x00", b"9" * 20, b"P"),
    *(
        b"T",
        b"/",
        b",",
        b"SECONDLY",
        b"COUNT=0",
        b"RECURRENCE-ID:",
        b"20260631",
        b"00000000T000000",
    ),
    *("٣".encode(), b"-1", b"BYSETPOS=366;", b"BYMONTHDAY=31;BYMONTH=2;", b"INTERVAL=1000;"),
)
cuts = st.tuples(
    st.integers(0, 3_000),
    st.integers(0, 40),
    st.one_of(st.sampled_from(WORDS), st.binary(max_size=4)),
)


def soon(data: bytes) -> None:
    began = time.process_time()
    try:
        found, problems = reading(data).windows, ()
    except IcalError as error:
        found, problems = (), error.problems
    assert all(checked(one.entry) == one.entry for one in found)
    assert all(what and (line is None or 1 <= line <= len(data)) for line, what in problems)
    assert time.process_time() - began < 1


@settings(max_examples=3 * settings.default.max_examples)
@given(sample=st.sampled_from(sorted(SAMPLES)), cuts=st.lists(cuts, min_size=1, max_size=8))
def test_files_that_are_mutilated(sample: str, cuts: list[tuple[int, int, bytes]]) -> None:
    """Parts are cut out, others are put in."""
    data = SAMPLES[sample].encode()
    for at, length, word in cuts:
        place = at % (len(data) + 1)
        data = data[:place] + word + data[place + length :]
    soon(data)


@given(st.binary(max_size=200))
def test_bytes_by_chance(data: bytes) -> None:
    """Alone, and as lines of an event."""
    soon(data)
    soon(b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\n" + data + b"\nEND:VEVENT\nEND:VCALENDAR")


@pytest.mark.proof  # for seconds
def test_a_file_as_large_as_may_be_is_read_in_time() -> None:
    """Of one line, of blank ones, of folds, of quotes, of parameters, of dates."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    start = f"DTSTART:{at:%Y%m%dT%H%M%SZ}"
    dates = ",".join(["20260601"] * (SIZE_LIMIT // 10))
    some = [
        b"BEGIN:VCALENDAR\nSUMMARY:" + b"x" * (SIZE_LIMIT - 100),
        b"\n" * SIZE_LIMIT,
        b"BEGIN:VCALENDAR" + b"\n " * (SIZE_LIMIT // 2 - 100),
        calendar(event('DTSTART;TZID="' + '"' * (SIZE_LIMIT - 200), "DURATION:PT1H")),
        calendar(event("DTSTART;" + "X=1;" * (SIZE_LIMIT // 4 - 100) + ":1", "DURATION:PT1H")),
        calendar(event(start, "DURATION:PT1H", "RRULE:FREQ=DAILY", f"EXDATE:{dates}")),
    ]
    for data in some:
        began = time.process_time()
        with suppress(IcalError):
            reading(data[:SIZE_LIMIT])
        assert time.process_time() - began < 10, data[:60]


@pytest.mark.parametrize(
    "lines",
    [
        ("DTSTART;TZID=" + "/a" * 25_000 + ":20260601T000000", "DURATION:PT1H"),
        ("DTSTART:20260601T000000", "DURATION:P999999999DT1H"),
        ("DTSTART:20990601T000000", "DURATION:P3000000DT1H"),
        ("DTSTART:20260601T000000", "DURATION:P99999999999999999W"),
        (
            "DTSTART:20260601T000000",
            "DURATION:PT1H",
            "RDATE;VALUE=PERIOD:20260601T000000/P999999999DT1S",
        ),
    ],
)
def test_a_line_that_costs_more_than_its_length_is_refused(lines: tuple[str, ...]) -> None:
    """A zone's name of many parts, which would be tried from each of them, and endless lengths."""
    data = calendar(event(*lines))
    soon(data)
    with pytest.raises(IcalError):
        reading(data)
