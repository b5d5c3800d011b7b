"""A zone's offsets in a day of UTC, with skipped and repeated wall-clock times; checks of zones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

DAY: Final = 1440
"""Minutes. All times here are minutes since 1970, of UTC or of a zone's wall clock."""

# Names in the system's database that are no places, or differ from machine to machine.
_NO_PLACES: Final = frozenset({"Factory", "localtime", "posixrules"})


@dataclass(frozen=True, slots=True)
class Span:
    """UTC minutes from `first` until before `end` with one offset.

    The wall clock skips `skipped` minutes at `first`. From `first` until before `repeated_until` it
    shows times that it has shown before.
    """

    first: int
    end: int
    offset: int
    skipped: int
    repeated_until: int


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the IANA names that a schedule may have, cached."""
    return frozenset(available_timezones() - _NO_PLACES)


def zone_problem(zone: Any) -> str:
    """Say why a value is no zone's name, with the nearest one; empty for a name, and for ''."""
    if not isinstance(zone, str):
        return f"is text, not {type(zone).__name__}"
    if not zone or zone in zone_names():
        return ""
    near = get_close_matches(zone, zone_names(), n=1, cutoff=0.75) if len(zone) <= 64 else []
    hint = f"; did you mean {near[0]!r}?" if near else ", such as Europe/Berlin"
    return f"{shown(zone)} is no IANA time zone{hint}"


def moment_problem(value: Any, *, first: datetime, end: datetime) -> str:
    """Say why a value is no aware datetime from `first` until before `end`; empty if it is."""
    if not isinstance(value, datetime):
        return f"is a datetime, not {type(value).__name__}"
    if value.utcoffset() is None:
        return "has no time zone; give an aware datetime"
    return "" if first <= value < end else f"is outside {first.year} to {end.year - 1}"


def shown(value: object) -> str:
    """Return a value for a message: short, and without control characters."""
    return ascii(value)[:60]


@lru_cache(maxsize=4096)
def spans(zone: str, day: int) -> tuple[Span, ...]:
    """Return the spans of a UTC day (days since 1970) in a zone that exists.

    The first may begin on the day before: its repeated times may reach into this day.
    """
    start, end = (day - 1) * DAY, (day + 1) * DAY
    found = []
    before = _offset(zone, start)
    for first, until in pairwise([start, *_changes(zone, start, end), end]):
        offset = _offset(zone, first)
        jump = offset - before
        found.append(
            Span(first, until, offset, skipped=max(0, jump), repeated_until=first + max(0, -jump))
        )
        before = offset
    return tuple(span for span in found if span.end > day * DAY)


def _changes(zone: str, start: int, end: int) -> Iterator[int]:
    """Yield the first minute of each new offset after `start` and before `end`."""
    for early, late in pairwise(range(start, end + 1, 60)):
        old = _offset(zone, early)
        if old == _offset(zone, late):
            continue
        same, other = early, late
        while other - same > 1:
            middle = (same + other) // 2
            if _offset(zone, middle) == old:
                same = middle
            else:
                other = middle
        if other < end:
            yield other


def _offset(zone: str, minute: int) -> int:
    """Return how many minutes the zone is ahead of UTC at a UTC minute."""
    ahead = datetime.fromtimestamp(minute * 60, ZoneInfo(zone)).utcoffset() or timedelta()
    return ahead // timedelta(minutes=1)
