"""When calendars are open, found by stepping a clock: what the project's answer is judged by.

It shares no code with the project, has dateutil expand each rule from its beginning (the project
begins near what is asked for) and knows entries only by the names of their fields. All of it is in
whole minutes.

An occurrence starts when the clock first shows its time, or right after the gap that its time
fell into. A window is over when the clock first shows its end, or a later time; a freeze when it
has shown its end for the last time. Rules in hours and minutes count elapsed time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rrulestr

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MARGIN = timedelta(hours=5)
"""So long a clock is watched before and after: longer than one is set back by."""

STEP = timedelta(hours=18)


@dataclass(frozen=True)
class Showing:
    """What a zone's clock shows, minute by minute from `begin` (UTC) on."""

    begin: datetime
    walls: tuple[datetime, ...]

    def moment(self, index: int) -> datetime:
        return self.begin + index * MINUTE


@lru_cache(maxsize=64)
def watch(zone: str, begin: datetime, end: datetime) -> Showing:
    """Step the clock of a zone."""
    place = ZoneInfo(zone)
    count = (end - begin) // MINUTE
    first = int(begin.timestamp())
    shown = (datetime.fromtimestamp(first + 60 * index, place) for index in range(count))
    return Showing(begin, tuple(wall.replace(tzinfo=None, fold=0) for wall in shown))


def open_minutes(
    calendars: Sequence[Sequence[Any]], *, start: datetime, end: datetime
) -> list[bool]:
    """Tell for each minute from `start` until before `end` whether all calendars are open.

    A calendar is the list of its entries.
    """
    return [
        all(minute)
        for minute in zip(*(_calendar(one, start, end) for one in calendars), strict=True)
    ] or [True] * ((end - start) // MINUTE)


def _calendar(entries: Sequence[Any], start: datetime, end: datetime) -> list[bool]:
    count = (end - start) // MINUTE
    windows = [entry for entry in entries if entry.effect == "window"]
    is_open = [not windows] * count
    for entry in windows:
        for index in _minutes(entry, start, end):
            is_open[index] = True
    for entry in entries:
        if entry.effect == "freeze":
            for index in _minutes(entry, start, end):
                is_open[index] = False
    return is_open


def _minutes(entry: Any, start: datetime, end: datetime) -> Iterator[int]:
    """Yield the minutes after `start` that an entry's occurrences cover."""
    for first, last in _occurrences(entry, start, end):
        if entry.approved is not None and not any(
            span.start <= first < span.end for span in entry.approved
        ):
            continue
        if entry.approved_starts is not None and first not in entry.approved_starts:
            continue
        moment = max(first, start)
        while moment < min(last, end):
            is_early = entry.valid_from is not None and moment < entry.valid_from
            is_late = entry.valid_until is not None and moment >= entry.valid_until
            if not is_early and not is_late:
                yield (moment - start) // MINUTE
            moment += MINUTE


def _occurrences(entry: Any, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    # In steps, so that entries of the same zone share a watch.
    reach = 2 * MARGIN + -(-entry.duration // STEP) * STEP
    showing = watch(entry.zone, start - reach, end + reach)
    asked = read(entry.rule) if entry.rule else {}
    if asked.get("FREQ") in ("HOURLY", "MINUTELY"):
        yield from _elapsed(entry, asked, showing)
        return
    newest = showing.walls[0]
    for index, wall in enumerate(showing.walls):
        shown = newest + MINUTE
        while shown <= wall:
            # Those that the clock skipped start now, as the one that it shows does.
            if _starts_at(entry, shown):
                over = _over(entry, showing, index, shown + entry.duration)
                if over is not None:
                    yield showing.moment(index), showing.moment(over)
            shown += MINUTE
        newest = max(newest, wall)


def _over(entry: Any, showing: Showing, index: int, finish: datetime) -> int | None:
    """Return the minute at which an occurrence is over; None after the end of the watch."""
    walls = showing.walls
    later = next((i for i in range(index, len(walls)) if walls[i] >= finish), None)
    if later is None or entry.effect == "window":
        return later
    again = range(later, min(len(walls), later + MARGIN // MINUTE))
    return max((i for i in again if walls[i] == finish), default=later)


def _starts_at(entry: Any, wall: datetime) -> bool:
    if wall in entry.excluded:
        return False
    if wall in entry.added:
        return True
    if not entry.rule:
        return wall == entry.starts
    return wall in _walls(entry.rule, entry.starts, entry.zone, wall.date())


@cache
def _walls(rule: str, starts: datetime, zone: str, day: date) -> frozenset[datetime]:
    """Return the times of a day that a rule asks for."""
    begin = datetime.combine(day, clock_time())
    found = frozenset(_expanded(rule, starts).between(begin, begin + DAY - MINUTE, inc=True))
    until = read(rule).get("UNTIL")
    if not until:
        return found
    highest = datetime.fromisoformat(until)
    if until.endswith("Z"):
        highest = max(watch(zone, highest - 2 * DAY, highest + MINUTE).walls)
    return frozenset(wall for wall in found if wall <= highest)


@cache
def _expanded(rule: str, starts: datetime) -> rrule:
    """Return all times of a rule from its beginning; dateutil knows no UNTIL of another clock."""
    parts = [part for part in rule.split(";") if not part.startswith("UNTIL=")]
    return rrulestr(";".join(parts), dtstart=starts, cache=True)


def _elapsed(
    entry: Any, asked: dict[str, str], showing: Showing
) -> Iterator[tuple[datetime, datetime]]:
    step = int(asked.get("INTERVAL", 1)) * (60 if asked["FREQ"] == "HOURLY" else 1)
    base = _first_showing(entry.starts, entry.zone)
    gone = {_first_showing(wall, entry.zone) for wall in entry.excluded}
    if entry.effect == "window":
        gone |= {_last_showing(wall, entry.zone) for wall in entry.excluded}
    more = {_first_showing(wall, entry.zone) for wall in entry.added}
    limit = None
    if until := asked.get("UNTIL"):
        limit = datetime.fromisoformat(until)
        if not until.endswith("Z"):
            limit = _first_showing(limit, entry.zone)
    for index in range(len(showing.walls)):
        moment = showing.moment(index)
        number, rest = divmod((moment - base) // MINUTE, step)
        is_start = number >= 0 and not rest and number < int(asked.get("COUNT", 10**9))
        is_start = is_start and (limit is None or moment <= limit)
        if (is_start or moment in more) and moment not in gone:
            yield moment, moment + entry.duration


@cache
def _first_showing(wall: datetime, zone: str) -> datetime:
    """Return the first minute at which a clock shows a time, or a later one."""
    showing = _around(wall, zone)
    return next(showing.moment(i) for i, shown in enumerate(showing.walls) if shown >= wall)


@cache
def _last_showing(wall: datetime, zone: str) -> datetime:
    showing = _around(wall, zone)
    found = [showing.moment(i) for i, shown in enumerate(showing.walls) if shown == wall]
    return found[-1] if found else _first_showing(wall, zone)


def _around(wall: datetime, zone: str) -> Showing:
    middle = wall.replace(tzinfo=UTC)
    return watch(zone, middle - 20 * timedelta(hours=1), middle + 20 * timedelta(hours=1))


@cache
def read(rule: str) -> dict[str, str]:
    """Read a rule as name and value; wrong ones are not looked for."""
    return dict(part.split("=") for part in rule.split(";"))
