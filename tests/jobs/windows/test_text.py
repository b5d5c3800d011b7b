"""jobs/windows/text.py: what people type of windows, there and back."""

from datetime import datetime, timedelta

import pytest

from jobs.windows import text
from jobs.windows.words import length_in_words

STARTS = datetime.fromisoformat("2026-11-10T22:00")


@pytest.mark.parametrize(
    ("typed", "length"),
    [
        ("6 h", timedelta(hours=6)),
        ("1d 6h 30min", timedelta(days=1, hours=6, minutes=30)),
        (" 90 MIN ", timedelta(minutes=90)),
        ("4:30", timedelta(hours=4, minutes=30)),
        ("45 s", timedelta(seconds=45)),
        ("0 s", timedelta(0)),
        ("", None),
        ("6", None),
        ("h", None),
        ("6 h 2 h", None),
        ("30 min 6 h", None),
        ("-6 h", None),
        ("4:75", None),
        ("6 hours", None),
        ("٦ h", None),
        ("999999999 d", None),
    ],
)
def test_a_length_is_read_or_refused(typed: str, length: timedelta | None) -> None:
    """Units from the largest down, each once."""
    assert text.read_duration(typed) == length


@pytest.mark.parametrize("seconds", [1, 59, 60, 3_661, 86_400, 31 * 86_400])
def test_a_length_is_read_as_it_is_shown(seconds: int) -> None:
    """So a form that is opened and saved changes nothing."""
    length = timedelta(seconds=seconds)
    assert text.read_duration(length_in_words(length)) == length


def test_dates_are_lines_and_a_day_has_the_time_of_the_first_one() -> None:
    """The first line that is no date is named."""
    found, wrong = text.read_dates("2026-12-24\n\n 2026-12-31 20:00 \n", starts=STARTS)
    assert [str(date) for date in found] == ["2026-12-24 22:00:00", "2026-12-31 20:00:00"]
    assert not wrong
    stored = text.dates_text([date.isoformat() for date in found])
    assert text.read_dates(stored, starts=STARTS)[0] == found
    assert text.read_dates("2026-12-24\nChristmas", starts=STARTS) == ((), "Christmas")


@pytest.mark.parametrize(
    ("repeat", "weekdays", "rule"),
    [
        (text.ONCE, [], ""),
        (text.DAILY, [], "FREQ=DAILY"),
        (text.WEEKLY, ["TU"], "FREQ=WEEKLY;BYDAY=TU"),
        (text.WEEKLY, ["TU", "SA", "SU"], "FREQ=WEEKLY;BYDAY=TU,SA,SU"),
        (text.MONTHLY, [], "FREQ=MONTHLY;BYMONTHDAY=10"),
        (text.MONTHLY_BY_WEEKDAY, [], "FREQ=MONTHLY;BYDAY=2TU"),
        (text.BY_RULE, [], "FREQ=YEARLY;COUNT=3"),
    ],
)
def test_a_simple_recurrence_is_a_rule_and_is_known_again(
    repeat: str, weekdays: list[str], rule: str
) -> None:
    """What no choice says is a rule of one's own."""
    assert text.rule_of(repeat, starts=STARTS, weekdays=weekdays, rule=rule) == rule
    assert text.repeat_of(rule, starts=STARTS) == (repeat, weekdays)
