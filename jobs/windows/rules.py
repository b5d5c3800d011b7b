"""A recurrence rule of RFC 5545 as text: its parts, and their checks.

It refuses what RFC 5545 forbids, rules in seconds, and BY parts with HOURLY or MINUTELY, whose days
and hours would be those of UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any, Final

from dateutil.rrule import weekday

from jobs.core.errors import WindowError

DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SUB_DAILY: Final = frozenset({"HOURLY", "MINUTELY"})
FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY")
LONGEST: Final = 500
"""Characters of a rule."""
MOST_COUNTED: Final = 10_000
"""The limit of COUNT."""
MOST_A_DAY: Final = 288
"""Times of a day by BYHOUR, BYMINUTE and BYSECOND together: one in five minutes."""
WIDEST: Final = 1_000
"""The limit of INTERVAL; for MINUTELY it is a week."""

# For each part that is a list of numbers: dateutil's name, the smallest, the largest, and whether
# negative ones count from the end.
_NUMBERS: Final = {
    "BYMONTH": ("bymonth", 1, 12, False),
    "BYWEEKNO": ("byweekno", 1, 53, False),
    "BYYEARDAY": ("byyearday", 1, 366, True),
    "BYMONTHDAY": ("bymonthday", 1, 31, True),
    "BYHOUR": ("byhour", 0, 23, False),
    "BYMINUTE": ("byminute", 0, 59, False),
    "BYSECOND": ("bysecond", 0, 59, False),
    "BYSETPOS": ("bysetpos", 1, 366, True),
}
WEEKS_OF_A_MONTH: Final = 5
_PARTS: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_NUMBERS)


@dataclass(frozen=True, slots=True)
class Rule:
    """The parts of a rule; `by` has dateutil's names and values.

    `until` is included; a naive one is by the clock of the entry's zone.
    """

    frequency: str
    interval: int
    count: int | None
    until: datetime | None
    week_start: int
    by: Mapping[str, tuple[Any, ...]]


def normal_text(text: str) -> str:
    """Return the stored form of a rule: capitals, no blanks, without the name RRULE."""
    if not isinstance(text, str):
        raise WindowError("rule", f"is text, not {type(text).__name__}")
    if len(text) > LONGEST:
        raise WindowError("rule", f"has {len(text):,} characters, the limit is {LONGEST}")
    return "".join(text.split()).upper().removeprefix("RRULE:").strip(";")


@lru_cache(maxsize=4096)
def read_rule(text: str) -> Rule:
    """Read a rule, and check its parts and their combination; raises WindowError."""
    parts: dict[str, str] = {}
    for part in normal_text(text).split(";"):
        name, _, value = part.partition("=")
        if name not in _PARTS:
            raise WindowError("rule", f"{name[:20]!a} is no part; there are {', '.join(_PARTS)}")
        if name in parts:
            raise WindowError("rule", f"has {name} twice")
        parts[name] = value
    if "FREQ" not in parts:
        raise WindowError("rule", f"has no FREQ; there are {', '.join(FREQUENCIES)}")
    frequency = parts["FREQ"]
    if frequency not in FREQUENCIES:
        problem = f"FREQ is one of {', '.join(FREQUENCIES)}, not {frequency[:20]!a}"
        raise WindowError("rule", problem)
    if "COUNT" in parts and "UNTIL" in parts:
        raise WindowError("rule", "has COUNT and UNTIL; RFC 5545 allows one of them")
    by = {
        label: _list(parts[name], _number(name, low, high, signed=signed))
        for name, (label, low, high, signed) in _NUMBERS.items()
        if name in parts
    }
    if "BYDAY" in parts:
        by["byweekday"] = _list(parts["BYDAY"], _day)
    _check_together(frequency, by)
    widest = 10_080 if frequency == "MINUTELY" else WIDEST
    return Rule(
        frequency=frequency,
        interval=_whole("INTERVAL", parts.get("INTERVAL", "1"), most=widest),
        count=_whole("COUNT", parts["COUNT"], most=MOST_COUNTED) if "COUNT" in parts else None,
        until=_until(parts["UNTIL"]) if "UNTIL" in parts else None,
        week_start=_week_start(parts.get("WKST", "MO")),
        by=MappingProxyType(by),
    )


def _check_together(frequency: str, by: Mapping[str, tuple[Any, ...]]) -> None:
    if frequency in SUB_DAILY and by:
        hint = "it counts elapsed time; use FREQ=DAILY with BYHOUR and BYMINUTE"
        raise WindowError("rule", f"{frequency} takes no BY parts, {hint}")
    if frequency != "YEARLY" and by.keys() & {"byweekno", "byyearday"}:
        raise WindowError("rule", "BYWEEKNO and BYYEARDAY go with FREQ=YEARLY only")
    if frequency == "WEEKLY" and "bymonthday" in by:
        raise WindowError("rule", "BYMONTHDAY does not go with FREQ=WEEKLY")
    if "byweekno" in by and "byweekday" not in by:
        raise WindowError("rule", "BYWEEKNO needs BYDAY: which days of the week")
    is_counted = any(day.n for day in by.get("byweekday", ()))
    if is_counted and (frequency not in {"MONTHLY", "YEARLY"} or "byweekno" in by):
        problem = "a numbered BYDAY such as 2SA goes with MONTHLY, or YEARLY without BYWEEKNO"
        raise WindowError("rule", problem)
    in_month = frequency == "MONTHLY" or "bymonth" in by
    if in_month and any(abs(day.n or 0) > WEEKS_OF_A_MONTH for day in by.get("byweekday", ())):
        problem = f"a numbered BYDAY of a month is at most {WEEKS_OF_A_MONTH}, such as 5SA or -5SA"
        raise WindowError("rule", problem)
    if "bysetpos" in by and len(by) == 1:
        raise WindowError("rule", "BYSETPOS needs another BY part to choose from")
    times = prod(len(by.get(name, (0,))) for name in ("byhour", "byminute", "bysecond"))
    if times > MOST_A_DAY:
        raise WindowError("rule", f"makes {times:,} times a day, the limit is {MOST_A_DAY}")


def _list(text: str, read: Callable[[str], Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(read(term) for term in text.split(",")))


def _number(name: str, low: int, high: int, *, signed: bool) -> Callable[[str], int]:
    limits = f"{low} to {high}" + (f" or -{high} to -1" if signed else "")

    def read(term: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,3}", term):
            number = int(term)
            if low <= number <= high or (signed and -high <= number <= -1):
                return number
        raise WindowError("rule", f"{name} has {term[:20]!a}; it takes {limits}")

    return read


def _day(term: str) -> weekday:
    match = re.fullmatch(r"([+-]?[0-9]{1,2})?([A-Z]{2})", term)
    if match and match[2] in DAYS and (not match[1] or 1 <= abs(int(match[1])) <= 53):
        return weekday(DAYS.index(match[2]), int(match[1]) if match[1] else None)
    raise WindowError("rule", f"BYDAY has {term[:20]!a}; it takes MO to SU, also as 2SA or -1FR")


def _week_start(text: str) -> int:
    if text not in DAYS:
        raise WindowError("rule", f"WKST is one of {', '.join(DAYS)}, not {text[:20]!a}")
    return DAYS.index(text)


def _whole(name: str, text: str, *, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        raise WindowError("rule", f"{name} is from 1 to {most:,}, not {text[:20]!a}")
    return int(text)


def _until(text: str) -> datetime:
    """Return the last time that UNTIL allows; for a date, the end of the day."""
    try:
        if re.fullmatch(r"[0-9]{8}", text):
            return datetime.combine(datetime.strptime(text, "%Y%m%d"), time.max)
        if re.fullmatch(r"[0-9]{8}T[0-9]{6}Z?", text):
            found = datetime.strptime(text[:15], "%Y%m%dT%H%M%S")
            return found.replace(tzinfo=UTC) if text.endswith("Z") else found
    except ValueError as error:
        raise WindowError("rule", f"UNTIL={text} is no date that exists") from error
    takes = "20261231, 20261231T220000 or 20261231T210000Z"
    raise WindowError("rule", f"UNTIL is {takes}, not {text[:20]!a}")
