"""The due minutes of a cron expression, by Debian's rule for clocks that are changed.

cronsim reads the expressions. Its own iteration (2.8) is not used: where a zone's clock is changed
by half an hour, or at midnight, it misses times, and yields times that the clock never shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from cronsim import CronSim

from jobs.core.errors import ScheduleError
from jobs.core.zones import DAY, spans, zone_names
from jobs.schedules.expressions import field_texts
from jobs.schedules.phases import EPOCH, MINUTE

_FIRST_DAY: Final = EPOCH.date().toordinal()


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, applied to the wall clock.

    `times` has a bit for each minute of a day that matches. `is_fixed`: neither minutes nor hours
    begin with a star; such jobs run once for skipped and once for repeated times.
    """

    times: int
    is_fixed: bool
    fields: CronSim

    def matches(self, day: int) -> bool:
        """Tell whether a day (days since 1970) of the wall clock matches."""
        wanted = date.fromordinal(_FIRST_DAY + day)
        return wanted.month in self.fields.months and self.fields.match_day(wanted)

    def bits(self, first: int, count: int) -> int:
        """Return a bit for each of `count` minutes of the wall clock, the first one lowest."""
        found = 0
        for day in range(first // DAY, (first + count - 1) // DAY + 1):
            if self.matches(day):
                ahead = day * DAY - first
                found |= self.times << ahead if ahead >= 0 else self.times >> -ahead
        return found & (1 << count) - 1


@lru_cache(maxsize=4096)
def expression(cron: str) -> Expression:
    """Read an expression of five fields or an alias; raises ScheduleError."""
    texts = field_texts(cron)
    fields = CronSim(" ".join(texts), datetime(2000, 1, 1, tzinfo=UTC))
    times = sum(1 << hour * 60 + minute for hour in fields.hours for minute in fields.minutes)
    is_fixed = not texts[0].startswith("*") and not texts[1].startswith("*")
    return Expression(times=times, is_fixed=is_fixed, fields=fields)


def cron_minutes(cron: str, zone: str, *, start: datetime, end: datetime) -> list[datetime]:
    """Return the due minutes of an expression in a zone ('' is UTC), `start <= d < end`, in UTC.

    Takes microseconds for a span of one minute: this process caches the minutes of each day.
    Raises ScheduleError.
    """
    return list(walk(cron, zone, start=start, end=end))


def walk(cron: str, zone: str, *, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield what `cron_minutes` returns, computed day by day on demand."""
    first, until = _rounded_up(start), _rounded_up(end)
    if first >= until:
        return
    for day in range(first // DAY, (until - 1) // DAY + 1):
        bits = _due_bits(cron, zone, day)
        begin, stop = max(first, day * DAY), min(until, (day + 1) * DAY)
        bits = bits >> begin - day * DAY & (1 << stop - begin) - 1
        while bits:
            lowest = bits & -bits
            yield EPOCH + (begin + lowest.bit_length() - 1) * MINUTE
            bits ^= lowest


def _rounded_up(moment: datetime) -> int:
    return -((EPOCH - moment) // MINUTE)


@lru_cache(maxsize=32_768)
def _due_bits(cron: str, zone: str, day: int) -> int:
    """Return a bit for each minute of a UTC day, set where the expression is due."""
    if zone and zone not in zone_names():
        raise ScheduleError("zone", f"{zone[:64]!r} is no IANA time zone")
    asked = expression(cron)
    # No zone's offset is longer than a day.
    if not any(asked.matches(near) for near in (day - 1, day, day + 1)):
        return 0
    due = 0
    for span in spans(zone or "UTC", day):
        first = max(span.first, day * DAY)
        if asked.is_fixed:
            skipped = span.first + span.offset - span.skipped
            if span.first >= day * DAY and asked.bits(skipped, span.skipped):
                due |= 1 << span.first - day * DAY
            first = max(first, span.repeated_until)
        if first < span.end:
            bits = asked.bits(first + span.offset, span.end - first)
            due |= bits << first - day * DAY
    return due
