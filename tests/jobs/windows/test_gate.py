"""jobs/windows/gate.py: queued now, or looked at when, by all calendars that apply."""

from datetime import UTC, datetime, timedelta

from jobs.windows import CalendarHours, Effect, Entry, Gate, gate_of

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NONE = timedelta(0)


def opening(*hours: float, length: float = 2, cut_off: timedelta = NONE) -> CalendarHours:
    """Return a calendar that opens so many hours from noon, each time for that long."""
    starts = [datetime(2026, 11, 20, 12) + hour * HOUR for hour in hours]
    entries = [Entry(Effect.WINDOW, one, length * HOUR, "UTC") for one in starts]
    return CalendarHours(tuple(entries), cut_off=cut_off)


def gate(*calendars: CalendarHours, needed: timedelta = NONE, delay: timedelta = NONE) -> Gate:
    return gate_of(calendars, now=NOON, needed=needed, delay=delay)


def test_without_a_calendar_it_is_open_for_ever() -> None:
    """And with one that nothing closes within a year: there is no last moment."""
    assert gate() == gate(CalendarHours(())) == Gate(is_open=True)


def test_the_last_moment_leaves_room_for_the_attempt_and_the_cut_off() -> None:
    """Of the calendar that closes first."""
    found = gate(opening(-1), opening(-1, length=4, cut_off=HOUR / 4), needed=HOUR / 2)
    assert found == Gate(is_open=True, not_after=NOON + HOUR / 4)


def test_what_does_not_fit_waits_for_what_does() -> None:
    """An opening is measured by what is left of it."""
    assert gate(opening(-1, 5), needed=HOUR * 2) == Gate(opens_at=NOON + 5 * HOUR)
    assert gate(opening(-1, 5), needed=HOUR * 3) == Gate()


def test_a_late_start_leaves_room_for_the_attempt() -> None:
    """Only openings that are still to come are spread, over the first half of what fits."""
    assert gate(opening(3), delay=HOUR) == Gate(opens_at=NOON + 4 * HOUR)
    delay = HOUR * 5 / 6
    assert gate(opening(3), delay=delay, needed=HOUR * 1.5) == Gate(
        opens_at=NOON + HOUR * (3 + 1 / 12)
    )
    assert gate(opening(3), delay=delay, needed=2 * HOUR) == Gate(opens_at=NOON + 3 * HOUR)
    assert gate(opening(-1), delay=HOUR).is_open
