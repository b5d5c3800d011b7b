"""jobs/windows/words.py: entries in words, and notes on changes of the clock."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.windows import Effect, Entry, in_words, notes, occurrences
from jobs.windows.words import length_in_words

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
STARTS = datetime(2026, 1, 3, 22)  # a Saturday
AHEAD, BACK = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("", "once, on 2026-01-03 at 22:00"),
        ("FREQ=DAILY", "every day at 22:00"),
        ("FREQ=DAILY;BYHOUR=22,4;BYMINUTE=0,30", "every day at 04:00, 04:30, 22:00 and 22:30"),
        (
            "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15",
            "every day at 7 times of the day from 09:00 to 15:00",
        ),
        ("FREQ=WEEKLY", "every week on Saturday at 22:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU", "every 2 weeks on Saturday and Sunday at 22:00"),
        ("FREQ=MONTHLY", "every month on the 3rd at 22:00"),
        (
            "FREQ=MONTHLY;BYDAY=1SA,-1FR",
            "every month on the 1st Saturday and the last Friday at 22:00",
        ),
        ("FREQ=MONTHLY;BYMONTHDAY=3,-1", "every month on the 3rd and last day at 22:00"),
        (
            "FREQ=MONTHLY;BYDAY=SA,SU;BYSETPOS=1,-2",
            "every month on Saturday and Sunday at 22:00, of these the 1st and 2nd to last",
        ),
        ("FREQ=YEARLY", "every year on the 3rd of January at 22:00"),
        ("FREQ=YEARLY;BYMONTH=1,7", "every year on the 3rd in January and July at 22:00"),
        ("FREQ=YEARLY;BYYEARDAY=3,-11", "every year on the 3rd and 11th to last day of the year"),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=SA", "every year on Saturday in week 1 at 22:00"),
        ("FREQ=HOURLY;INTERVAL=6", "every 6 hours of elapsed time from 2026-01-03 22:00"),
        ("FREQ=DAILY;COUNT=10", "every day at 22:00, 10 times"),
        ("FREQ=DAILY;UNTIL=20261231T220000Z", "every day at 22:00, until 2026-12-31 22:00 UTC"),
        ("FREQ=DAILY;UNTIL=20261231", "every day at 22:00, until 2026-12-31 23:59"),
    ],
)
def test_words(rule: str, words: str) -> None:
    """As a person would say it, with the length by the clock and the zone."""
    said = in_words(Entry(Effect.WINDOW, STARTS, 8 * HOUR, "Europe/Berlin", rule))
    assert said.startswith(words) and said.endswith(", for 8 h, Europe/Berlin")


@pytest.mark.parametrize(
    ("length", "words"),
    [(30 * HOUR, "1 d 6 h"), (HOUR / 60, "1 min"), (HOUR / 1440, "2.5 s"), (0 * HOUR, "0 s")],
)
def test_lengths(length: timedelta, words: str) -> None:
    """Days, hours, minutes and seconds, those that are not none."""
    assert length_in_words(length) == words


def noted(starts: str, hours: float, day: datetime, effect: Effect = Effect.WINDOW) -> list[str]:
    entry = Entry(
        effect, datetime.fromisoformat(starts), hours * HOUR, "Europe/Berlin", "FREQ=DAILY"
    )
    found = occurrences(entry, start=day - 3 * HOUR, end=day + 12 * HOUR)
    return [notes(entry, span) for span in found]


SHORTER, LONGER = (
    "clocks are changed: shorter than usual, ",
    "clocks are changed: longer than usual, ",
)


@pytest.mark.parametrize(
    ("starts", "hours", "day", "note"),
    [
        ("02:30", 2, AHEAD, "02:30 is skipped by the clock; it starts right after, at 03:00; "),
        ("01:00", 1.5, AHEAD, "02:30 is skipped by the clock; it ends at 03:00; "),
        ("02:30", 2, BACK, "02:30 comes twice; it starts at the first; "),
        ("01:00", 1.5, BACK, "02:30 comes twice; it ends at the first"),
        ("22:00", 8, AHEAD, SHORTER + "7 h instead of 8 h"),
        ("22:00", 8, BACK, LONGER + "9 h instead of 8 h"),
        ("22:00", 8, AHEAD + 60 * DAY, ""),
        ("04:00", 2, BACK, ""),
    ],
)
def test_notes(starts: str, hours: float, day: datetime, note: str) -> None:
    """What the clock does at the start, at the end, and to the length; mostly nothing."""
    found = noted(f"2026-01-03 {starts}", hours, day)[0]
    assert found.startswith(note) and bool(found) == bool(note)
