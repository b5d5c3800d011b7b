"""jobs/ical: what a file means, and what is refused of it with the line."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.calendars.ical import EVENT_LIMIT, SIZE_LIMIT, IcalError
from jobs.windows import Effect, Entry, occurrences
from tests.jobs.calendars.ical.samples import (
    SAMPLES,
    calendar,
    event,
    reading,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
START = "DTSTART;TZID=Europe/Berlin:20260606T220000"
END = "DTEND;TZID=Europe/Berlin:20260607T060000"
WEEKLY = "RRULE:FREQ=WEEKLY;BYDAY=SA"
NIGHT = Entry(
    Effect.WINDOW,
    datetime.fromisoformat("2026-06-06 22:00"),
    8 * HOUR,
    "Europe/Berlin",
    "FREQ=WEEKLY;BYDAY=SA",
)


def entries(*events: str) -> dict[str, Entry]:
    """Return the entries of a calendar with these events, by their UIDs."""
    return {found.uid: found.entry for found in reading(calendar(*events)).windows}


def only(*lines: str) -> Entry:
    """Return the entry of the only event."""
    [found] = entries(event(*lines)).values()
    return found


def refused(*events: str) -> IcalError:
    """Return why a calendar of these events is refused."""
    with pytest.raises(IcalError) as caught:
        reading(calendar(*events))
    return caught.value


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\r\r\n", "\n\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_end_as_they_like(end: str, mark: bytes) -> None:
    """And a mark at the beginning is no matter."""
    for sample in SAMPLES.values():
        data = mark + sample.replace("\n", end).encode()
        assert [one.entry for one in reading(data).windows] == [
            one.entry for one in reading(sample).windows
        ]


def test_a_line_may_be_folded_anywhere() -> None:
    """In the middle of a character and of a number too, with a blank or a tab."""
    whole = calendar(event(START, END, "SUMMARY:Wartung für alle"))
    folded = whole.replace(b"\xc3\xbc", b"\xc3\r\n \xbc").replace(b"2026", b"20\r\n\t26")
    assert reading(folded).windows[0].entry == reading(whole).windows[0].entry
    assert reading(folded).windows[0].entry.reason == "Wartung für alle"


@pytest.mark.parametrize(
    ("lines", "hours"),
    [
        ((START, END), 8),
        ((START, "DURATION:PT8H"), 8),
        ((START, "DURATION:P1DT1H"), 25),
        ((START, "DURATION:P1W"), 168),
        ((START, "DTEND:20260607T040000Z"), 8),
        ((START, "DTEND;TZID=America/New_York:20260607T000000"), 8),
        (("DTSTART;VALUE=DATE:20260606",), 24),
        (("DTSTART;VALUE=DATE:20260606", "DURATION:P2D"), 48),
        # Over the night in which clocks go forward, and back: the end is that of the file.
        (("DTSTART;TZID=Europe/Berlin:20260328T220000", "DURATION:PT8H"), 9),
        (("DTSTART;TZID=Europe/Berlin:20261024T220000", "DURATION:PT8H"), 7),
        (("DTSTART;TZID=Europe/Berlin:20261024T220000", "DURATION:PT8H", "RRULE:FREQ=DAILY"), 8),
    ],
)
def test_a_length_is_by_the_clock(lines: tuple[str, ...], hours: int) -> None:
    """From DTEND in whatever zone, or DURATION: of what comes once, elapsed time."""
    assert only(*lines).duration == hours * HOUR


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("Eastern Standard Time", "America/New_York"),
        (
            "/citadel.org/20210210_1/America/Argentina/Buenos_Aires",
            "America/Argentina/Buenos_Aires",
        ),
        ("Our own", "Asia/Tokyo"),
    ],
)
def test_zones_have_many_names(name: str, zone: str) -> None:
    """IANA's, Windows', with a vendor before it, or one that its VTIMEZONE gives a place."""
    own = "BEGIN:VTIMEZONE\nTZID:Our own\nX-LIC-LOCATION:Asia/Tokyo\nEND:VTIMEZONE"
    [found] = entries(
        own, event(f'DTSTART;TZID="{name}":20260606T220000', "DURATION:PT1H")
    ).values()
    assert found.zone == zone


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("EXDATE;TZID=Europe/Berlin:20260613T220000,20260620T220000", [6, 27]),
        ("EXDATE:20260613T200000Z", [6, 20, 27]),
        ("EXDATE;TZID=America/New_York:20260613T160000", [6, 20, 27]),
        ("EXDATE;VALUE=DATE:20260613,20260620\nEXDATE;VALUE=DATE:20260627", [6]),
        ("RDATE:20260610T200000Z", [6, 10, 13, 20, 27]),
        ("RDATE;VALUE=DATE:20260610,20260611", [6, 10, 11, 13, 20, 27]),
        ("RDATE;VALUE=PERIOD:20260610T200000Z/PT8H", [6, 10, 13, 20, 27]),
        ("RDATE:20260610T200000Z\nEXDATE:20260610T200000Z", [6, 13, 20, 27]),
    ],
)
def test_dates_are_taken_out_and_added(line: str, left: list[int]) -> None:
    """As dates or times, of any zone, one or many."""
    spans = occurrences(
        only(START, END, WEEKLY, *line.split("\n")),
        start=datetime(2026, 6, 1, tzinfo=UTC),
        end=datetime(2026, 7, 1, tzinfo=UTC),
    )
    assert [span.start.day for span in spans] == left


def test_a_period_of_another_length_is_a_window_of_its_own() -> None:
    """Known again by the moment at which it starts."""
    found = entries(event(START, END, WEEKLY, "RDATE;VALUE=PERIOD:20260610T200000Z/PT1H"))
    assert found["a"] == NIGHT
    assert found["a 20260610T200000Z"].duration == HOUR


def test_an_exception_is_known_again_wherever_it_is_moved() -> None:
    """By the moment that it replaces, in whatever zone the file says it."""
    for when in (
        ";TZID=Europe/Berlin:20260613T220000",
        ":20260613T200000Z",
        ";VALUE=DATE:20260613",
    ):
        other = event(f"RECURRENCE-ID{when}", "DTSTART:20260614T010000Z", "DURATION:PT1H")
        found = entries(event(START, END, WEEKLY), other)
        assert found["a"].excluded == (at("2026-06-13 22:00"),)
        assert found["a 20260613T200000Z"].starts == at("2026-06-14 01:00")


def test_what_is_cancelled_is_not_there() -> None:
    """One occurrence; one event; a series with all that replaces some of it."""
    cancelled = event("RECURRENCE-ID:20260613T200000Z", "STATUS:CANCELLED")
    assert entries(event(START, END, WEEKLY), cancelled) == {
        "a": replace(NIGHT, excluded=(at("2026-06-13 22:00"),))
    }
    other = event("RECURRENCE-ID:20260606T200000Z", START, END)
    assert entries(event(START, END, WEEKLY, "STATUS:cancelled"), other) == {}
    assert entries(event("STATUS:CANCELLED")) == {}


def test_of_one_event_the_newest_counts() -> None:
    """By SEQUENCE, wherever it stands; one that is there twice is there once."""
    newer = event(START, "DURATION:PT1H", "SEQUENCE:3")
    for order in ((newer, event(START, END)), (event(START, END), newer), (newer, newer)):
        assert entries(*order)["a"].duration == HOUR
    assert "twice" in refused(event(START, END), event(START, "DURATION:PT1H")).problem


def test_a_start_beside_its_rule_is_moved_and_said() -> None:
    """To the first time of the rule, for programs differ in what the other one means."""
    [found] = reading(calendar(event(START, END, "RRULE:FREQ=WEEKLY;BYDAY=MO"))).windows
    assert found.entry.starts == at("2026-06-08 22:00")
    [(line, note)] = reading(calendar(event(START, END, "RRULE:FREQ=WEEKLY;BYDAY=MO"))).notes
    assert line == 2 and "2026-06-08 22:00" in note


def test_other_components_are_passed_over() -> None:
    """Tasks, journals, alarms, unknown ones; whatever is inside an event is not the event's."""
    todo = "BEGIN:VTODO\nUID:b\nDTSTART:x\nEND:VTODO"
    alarm = "BEGIN:VALARM\nTRIGGER:-PT5M\nDURATION:PT9H\nUID:c\nEND:VALARM"
    assert entries(todo, event(START, END, WEEKLY, *alarm.split("\n"))) == {"a": NIGHT}


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        ((END,), 2, "no DTSTART"),
        ((START,), 2, "no DTEND and no DURATION"),
        ((START, END, START), 6, "DTSTART stands twice"),
        ((START, END, "DURATION:PT1H"), 6, "beside DTEND"),
        ((START, "DTEND;VALUE=DATE:20260607"), 5, "not both dates"),
        (("DTSTART:20260231T220000Z", "DURATION:PT1H"), 4, "does not exist"),
        (("DTSTART:2026-06-06", "DURATION:PT1H"), 4, "it takes 20261231"),
        (("DTSTART:16010101T000000", "DURATION:PT1H"), 4, "it takes 1970 to 2099"),
        ((START, "DURATION:-PT1H"), 5, "it takes PT8H"),
        ((START, "DURATION:PT0S"), 5, "is from 1 second to 31 days"),
        ((START, "DTEND;TZID=Europe/Berlin:20260606T210000"), 5, "is from 1 second to 31 days"),
        ((START, "DURATION:P9999999999D"), 5, "it takes PT8H"),
        (("DTSTART;TZID=Moon:20260606T220000", END), 4, "'Moon' is no known time zone"),
        ((START, END, "RRULE:FREQ=SECONDLY"), 6, "FREQ is one of"),
        ((START, END, "RRULE:FREQ=DAILY;BYHOUR=30"), 6, "it takes 0 to 23"),
        ((START, END, "RRULE:FREQ=YEARLY;UNTIL=20200101"), 6, "UNTIL before the first"),
        ((START, END, WEEKLY, WEEKLY), 7, "RRULE stands twice"),
        ((START, END, "EXRULE:FREQ=WEEKLY"), 6, "EXRULE is out of use"),
        ((START, END, WEEKLY, "EXDATE:tomorrow"), 7, "it takes 20261231"),
        ((START, END, "RECURRENCE-ID;RANGE=THISANDFUTURE:20260606T200000Z"), 6, "end the series"),
        ((START, END, "RECURRENCE-ID:20260606T200000Z", WEEKLY), 7, "of one occurrence"),
        ((START, END, "SEQUENCE:many"), 6, "is a whole number"),
        (
            (START, "DURATION:PT1H", "RRULE:FREQ=HOURLY", "EXDATE;VALUE=DATE:20260606"),
            7,
            "of a rule in hours or minutes, give times",
        ),
        (("DTSTART;TZID=Europe/Berlin:20260329T021500", "DURATION:PT10M"), 4, ""),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(
    lines: tuple[str, ...], line: int, problem: str
) -> None:
    """And with what would be right."""
    if not problem:
        lines = (lines[0], "DTEND;TZID=Europe/Berlin:20260329T024500")
        problem = "lies in a gap"
    error = refused(event(*lines))
    assert error.line == line, error
    assert problem in error.problem


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"", None, "is empty"),
        (b"\n \n", None, "is empty"),
        (b"<html>", 1, "is no line of iCalendar"),
        (b"key,task\na:b", 1, "is no line of iCalendar"),
        (b"SUMMARY:x", 1, "outside of BEGIN:VCALENDAR"),
        (b" BEGIN:VCALENDAR", 1, "continues no line"),
        (b"BEGIN:VEVENT\nEND:VEVENT", 1, "outside of BEGIN:VCALENDAR"),
        (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\n", 2, "was cut off"),
        (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", 3, "where VEVENT, begun in line 2"),
        (b"BEGIN:VCALENDAR\nSUMMARY:\xff\nEND:VCALENDAR", 2, "is not UTF-8"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR".encode("utf-16"), 1, "is not UTF-8"),
        (b"BEGIN:VCALENDAR\nSUMMARY:\0\nEND:VCALENDAR", 2, "NUL"),
        (b"BEGIN:VCALENDAR\n" + b"BEGIN:X\n" * 30, 21, "too deep"),
        (b"x" * (SIZE_LIMIT + 1), None, "1,048,577 bytes, the limit is 1,048,576"),
    ],
)
def test_a_file_that_is_broken_is_refused_with_the_line(
    data: bytes, line: int | None, problem: str
) -> None:
    """Nothing of it is taken: half of a calendar is another calendar."""
    with pytest.raises(IcalError) as caught:
        reading(data)
    assert caught.value.line == line
    assert problem in caught.value.problem


def test_an_event_too_many_is_refused() -> None:
    """With the line in which it begins, and so are too many windows of few events."""
    some = "BEGIN:VEVENT\nEND:VEVENT\n" * (EVENT_LIMIT + 1)
    error = refused(some)
    assert (error.line, "5,001" in error.problem) == (2 + 2 * EVENT_LIMIT, True)
    first = datetime(2026, 1, 1, tzinfo=UTC)
    periods = ",".join(
        f"{first + number * HOUR:%Y%m%dT%H%M%SZ}/PT1M" for number in range(EVENT_LIMIT + 1)
    )
    assert "make more than 5,000 windows" in refused(event(START, END, f"RDATE:{periods}")).problem
