"""When cron expressions are due, found by stepping a clock: what the project's answer is judged by.

It shares no code with the project, and reads expressions by itself. The rule is that of Debian's
cron(8), for clocks that are changed: a job at fixed times, neither minutes nor hours beginning
with a star, runs once right after a gap that its time fell into, and not again for a time that
the clock shows a second time. All others run whenever the clock shows what they ask for.
"""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
RUN_UP = timedelta(hours=6)
"""So long the clock is watched before anything is judged: longer than one is set back by."""

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True)
class Asked:
    """The fields of an expression; special days as text."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int | str]
    months: frozenset[int]
    weekdays: frozenset[int | str]
    both_days: bool
    fixed: bool

    def on(self, day: date) -> bool:
        last = monthrange(day.year, day.month)[1]
        number = (day.weekday() + 1) % 7
        names: set[int | str] = {day.day}
        if day.day == last:
            names.add("L")
        if day.day == max(
            d for d in range(1, last + 1) if date(day.year, day.month, d).weekday() < 5
        ):
            names.add("LW")
        week: set[int | str] = {number, f"{number}#{(day.day - 1) // 7 + 1}"}
        if day.day > last - 7:
            week.add(f"{number}L")
        hits = (not names.isdisjoint(self.days), not week.isdisjoint(self.weekdays))
        return day.month in self.months and (all(hits) if self.both_days else any(hits))


def read(text: str) -> Asked:
    """Read five fields; wrong ones are not looked for."""
    minute, hour, day, month, weekday = text.upper().split()
    return Asked(
        minutes=_numbers(minute, 0, 59),
        hours=_numbers(hour, 0, 23),
        days=_words(day, 1, 31),
        months=_numbers(month, 1, 12, MONTHS),
        weekdays=frozenset(
            number % 7 if isinstance(number, int) else number
            for number in _words(weekday, 0, 7, DAYS)
        ),
        both_days=day[0] == "*" or weekday[0] == "*",
        fixed=minute[0] != "*" and hour[0] != "*",
    )


def due(
    expressions: Sequence[str], zone: str, *, start: datetime, end: datetime
) -> list[list[datetime]]:
    """Return for each expression the UTC minutes, `start <= m < end`, at which it is due."""
    asked = [read(text) for text in expressions]
    found: list[list[datetime]] = [[] for _ in expressions]
    days: dict[date, list[bool]] = {}

    def hits(wall: datetime) -> Iterator[int]:
        day = wall.date()
        if day not in days:
            days[day] = [one.on(day) for one in asked]
        for number, one in enumerate(asked):
            if days[day][number] and wall.hour in one.hours and wall.minute in one.minutes:
                yield number

    place = ZoneInfo(zone)
    moment = start - RUN_UP
    newest = moment.astimezone(place).replace(tzinfo=None) - MINUTE
    while moment < end:
        wall = moment.astimezone(place).replace(tzinfo=None)
        here: set[int] = set()
        skipped = newest + MINUTE
        while skipped < wall:
            here.update(number for number in hits(skipped) if asked[number].fixed)
            skipped += MINUTE
        here.update(number for number in hits(wall) if wall > newest or not asked[number].fixed)
        if moment >= start:
            for number in here:
                found[number].append(moment.astimezone(UTC))
        newest = max(newest, wall)
        moment += MINUTE
    return found


def _numbers(text: str, low: int, high: int, names: Sequence[str] = ()) -> frozenset[int]:
    return frozenset(n for n in _words(text, low, high, names) if isinstance(n, int))


def _words(text: str, low: int, high: int, names: Sequence[str] = ()) -> frozenset[int | str]:
    """Return the values of a list: numbers, and for days also L, LW, 5L and 5#2."""

    def number(word: str) -> int:
        return names.index(word) + low if word in names else int(word)

    found: set[int | str] = set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            found.update(range(low, high + 1, int(step or 1)))
        elif span in ("L", "LW"):
            found.add(span)
        elif "#" in span:
            day, _, nth = span.partition("#")
            found.add(f"{number(day) % 7}#{nth}")
        elif span.endswith("L"):
            found.add(f"{number(span[:-1]) % 7}L")
        elif dash:
            found.update(range(number(first), number(last) + 1, int(step or 1)))
        elif step:
            found.update(range(number(first), high + 1, int(step)))
        else:
            found.add(number(span))
    return frozenset(found)
