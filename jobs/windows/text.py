"""The fields of a window in a form as text: lengths, dates, simple recurrences. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from jobs.windows.rules import DAYS

ONCE: Final = "once"
DAILY: Final = "daily"
WEEKLY: Final = "weekly"
MONTHLY: Final = "monthly"
MONTHLY_BY_WEEKDAY: Final = "monthly by weekday"
BY_RULE: Final = "rule"

_UNITS: Final = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_PART: Final = re.compile(r"(\d{1,9})\s*(d|h|min|m|s)\s*", re.ASCII)
_CLOCK: Final = re.compile(r"(\d{1,3}):([0-5]\d)", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_duration(text: str) -> timedelta | None:
    """Return a length such as `6 h`, `1 d 6 h 30 min` or `4:30` (hours and minutes), or None."""
    text = text.strip().lower()
    if clock := _CLOCK.fullmatch(text):
        return timedelta(hours=int(clock[1]), minutes=int(clock[2]))
    at, seconds, seen = 0, 0, []
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        size = _UNITS[part[2]]
        seen.append(size)
        seconds += int(part[1]) * size
        at = part.end()
    # Units must be in order, each once: anything else is probably a mistake.
    if not seen or seen != sorted(set(seen), reverse=True) or seconds > 10**9:
        return None
    return timedelta(seconds=seconds)


def read_dates(text: str, *, starts: datetime) -> tuple[tuple[datetime, ...], str]:
    """Return the dates in the lines, at `starts`' time by default, and the first wrong line."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            date = datetime.fromisoformat(line)
        except ValueError:
            return (), line
        if _DATE.fullmatch(line):
            date = datetime.combine(date.date(), starts.time())
        found.append(date)
    return tuple(found), ""


def dates_text(dates: Collection[str]) -> str:
    """Return stored dates as lines."""
    return "\n".join(date.replace("T", " ") for date in dates)


def rule_of(repeat: str, *, starts: datetime, weekdays: Sequence[str], rule: str) -> str:
    """Return the RRULE of a simple recurrence, with the day of `starts`."""
    day = DAYS[starts.weekday()]
    if repeat == WEEKLY:
        chosen = [one for one in DAYS if one in weekdays] or [day]
        return f"FREQ=WEEKLY;BYDAY={','.join(chosen)}"
    return {
        DAILY: "FREQ=DAILY",
        MONTHLY: f"FREQ=MONTHLY;BYMONTHDAY={starts.day}",
        MONTHLY_BY_WEEKDAY: f"FREQ=MONTHLY;BYDAY={(starts.day + 6) // 7}{day}",
        BY_RULE: rule,
    }.get(repeat, "")


def repeat_of(rule: str, *, starts: datetime) -> tuple[str, list[str]]:
    """Return the simple recurrence of a rule, and its days of the week."""
    if not rule:
        return ONCE, []
    days = rule.removeprefix("FREQ=WEEKLY;BYDAY=").split(",")
    for repeat in (DAILY, WEEKLY, MONTHLY, MONTHLY_BY_WEEKDAY):
        if rule_of(repeat, starts=starts, weekdays=days, rule="") == rule:
            return repeat, days if repeat == WEEKLY else []
    return BY_RULE, []
