"""jobs/windows/why_closed.py: which window, freeze or approval keeps a run, in one sentence."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobs.core.phrases import Phrase
from jobs.windows import CalendarHours, Effect, Entry, NamedHours, Span, why_closed

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday
HOUR = timedelta(hours=1)
NIGHTS = Entry(
    Effect.WINDOW,
    starts=datetime(2026, 1, 3, 22),
    duration=8 * HOUR,
    zone="Europe/Berlin",
    rule="FREQ=WEEKLY;BYDAY=SA",
    reason="nights",
)
YEAR_END = Entry(
    Effect.FREEZE,
    starts=datetime(2026, 11, 20),
    duration=timedelta(days=20),
    zone="Europe/Berlin",
    reason="year end",
)


def named(*entries: Entry, name: str = "Acme", cut_off: timedelta = timedelta(0)) -> NamedHours:
    return NamedHours(
        name, CalendarHours(entries, cut_off), ("by anna at 2026-11-19 08:00 UTC",) * len(entries)
    )


def why(*calendars: NamedHours, needed: timedelta = HOUR) -> str:
    found = why_closed(calendars, now=NOON, needed=needed)
    # A page renders it in the reader's language.
    assert not found or isinstance(found, Phrase)
    return found


def test_the_window_that_opens_next() -> None:
    """By its own clock, with its name and its calendar's."""
    says = "Window 'nights' of calendar 'Acme' opens Sat 2026-11-21 22:00 Europe/Berlin."
    assert why(named(NIGHTS)) == says
    assert why(named(replace(NIGHTS, reason=""))).startswith("A window of calendar 'Acme' opens")


def test_nothing_keeps_what_may_start() -> None:
    """Without a calendar, or in an opening."""
    assert why() == ""
    assert why(named(replace(NIGHTS, starts=datetime(2026, 11, 20, 12), rule=""))) == ""


def test_a_freeze_is_named_with_its_end_and_what_follows() -> None:
    """It wins over windows; the opening after it may come later than its end."""
    assert why(named(YEAR_END)) == (
        "Freeze 'year end' of calendar 'Acme' until Thu 2026-12-10 00:00 Europe/Berlin."
    )
    assert why(named(NIGHTS, YEAR_END)).endswith(
        "until Thu 2026-12-10 00:00 Europe/Berlin; it may start Sat 2026-12-12 22:00 Europe/Berlin."
    )


def test_a_window_that_nobody_has_approved() -> None:
    """With who asked for it; one that opens before it is agreed to is named in its place."""
    pending = replace(NIGHTS, approved=())
    assert why(named(pending)) == (
        "Window 'nights' of calendar 'Acme' is not approved: asked for by anna at "
        "2026-11-19 08:00 UTC; no opening long enough (needs 1 h) within a year."
    )
    later = replace(NIGHTS, rule="FREQ=WEEKLY;BYDAY=SU", starts=datetime(2026, 1, 4, 22))
    both = why(named(replace(later, reason="days"), pending))
    assert both.startswith("Window 'nights' of calendar 'Acme' is not approved")
    sooner = replace(NIGHTS, starts=datetime(2026, 11, 20, 18), rule="", reason="once")
    assert why(named(sooner, pending)) == (
        "Window 'once' of calendar 'Acme' opens Fri 2026-11-20 18:00 Europe/Berlin."
    )


def test_an_approval_that_has_expired() -> None:
    """With when it did; an approval of one occurrence is none of the others."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    once = Span(start, start + timedelta(microseconds=1))
    lapsed = replace(NIGHTS, approved=(once, Span(start, datetime(2026, 11, 19, 7, tzinfo=UTC))))
    assert why(named(lapsed)).startswith(
        "Window 'nights' of calendar 'Acme' is not approved: its approval expired"
        " Thu 2026-11-19 08:00 Europe/Berlin; "
    )
    ends = replace(NIGHTS, approved=(Span(start, datetime(2026, 11, 21, 7, tzinfo=UTC)),))
    assert "its approval ends before, Sat 2026-11-21 08:00 Europe/Berlin" in why(named(ends))
    assert "is not approved: asked for by anna" in why(named(replace(NIGHTS, approved=(once,))))


def test_of_several_calendars_the_one_that_opens_last() -> None:
    """And when all of them are open, where that is later."""
    evening = replace(NIGHTS, starts=datetime(2026, 11, 20, 18), rule="", reason="once")
    assert why(named(evening, name="A"), named(NIGHTS)).startswith("Window 'nights' of calendar")
    sundays = replace(NIGHTS, starts=datetime(2026, 11, 22, 1), rule="FREQ=WEEKLY", duration=HOUR)
    saturdays = replace(NIGHTS, duration=4 * HOUR)
    open_now = replace(NIGHTS, starts=datetime(2026, 11, 20, 12), rule="", added=())
    assert why(named(open_now, name="now"), named(saturdays)) == (
        "Window 'nights' of calendar 'Acme' opens Sat 2026-11-21 22:00 Europe/Berlin; "
        "no opening long enough (needs 1 h) within a year."
    )
    assert "opens Sun 2026-11-22 01:00 Europe/Berlin." in why(named(saturdays), named(sundays))


def test_an_opening_that_is_too_short() -> None:
    """The rest of this one, or all that are to come."""
    short = replace(NIGHTS, starts=datetime(2026, 11, 20, 12), rule="FREQ=DAILY", duration=2 * HOUR)
    assert why(named(short), needed=90 * timedelta(minutes=1)) == (
        "What is left of this opening is too short for 1 h 30 min; "
        "the next one is Sat 2026-11-21 12:00 Europe/Berlin."
    )
    assert why(named(short), needed=3 * HOUR) == (
        "No opening long enough (needs 3 h) within a year."
    )


def test_near_the_end_of_an_opening_the_cut_off_is_named() -> None:
    """What needs no time is never called too long; NOW is 12:00 UTC, 13:00 in Berlin."""
    noon = replace(NIGHTS, starts=datetime(2026, 11, 20, 12), rule="FREQ=DAILY", duration=2 * HOUR)
    long = replace(noon, starts=datetime(2026, 11, 20, 10), duration=6 * HOUR)
    for needed in (timedelta(0), HOUR):
        assert why(named(long, cut_off=4 * HOUR), needed=needed) == (
            "Nothing starts in the last 4 h before the close, Fri 2026-11-20 16:00 Europe/Berlin; "
            "the next one is Sat 2026-11-21 10:00 Europe/Berlin."
        )
    assert why(named(noon, cut_off=HOUR / 2), needed=HOUR) == (
        "What is left of this opening, 30 min of which are cut off, is too short for 1 h; "
        "the next one is Sat 2026-11-21 12:00 Europe/Berlin."
    )


def test_a_calendar_that_does_not_open_any_more_is_said_once() -> None:
    """That no opening comes within a year is what its sentence says already."""
    over = replace(NIGHTS, starts=datetime(2026, 1, 3, 22), rule="")
    for needed in (HOUR, timedelta(0)):
        assert why(named(over), needed=needed) == "Calendar 'Acme' does not open within a year."
