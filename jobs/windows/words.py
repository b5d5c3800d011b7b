"""A window or freeze in words, and notes on occurrences around a change of the clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from fleet import counted
from jobs.windows.entries import Effect, Entry, Span
from jobs.windows.occurrences import FARTHEST, all_occurrences
from jobs.windows.rules import SUB_DAILY, Rule, read_rule
from jobs.windows.wall_clock import is_repeated, is_skipped, moment_at, shown_at

_UNITS: Final = {
    "YEARLY": "year",
    "MONTHLY": "month",
    "WEEKLY": "week",
    "DAILY": "day",
    "HOURLY": "hour",
    "MINUTELY": "minute",
}
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def notes(entry: Entry, span: Span) -> str:
    """Return notes on clock changes in an occurrence, clipped or not; mostly an empty text."""
    if entry.rule and read_rule(entry.rule).frequency in SUB_DAILY:
        return _note_on_hour(span, entry.zone)
    start = span.start - entry.duration - FARTHEST
    for wall, whole in all_occurrences(entry, start=start, end=span.end):
        if whole.start <= span.start and whole.end >= span.end:
            return "; ".join(_notes(entry, wall, whole))
    return ""


def _notes(entry: Entry, wall: datetime, whole: Span) -> list[str]:
    end = wall + entry.duration
    found = []
    if is_skipped(wall, entry.zone):
        here = shown_at(whole.start, entry.zone)
        found.append(
            f"{wall:%H:%M} is skipped by the clock; it starts right after, at {here:%H:%M}"
        )
    elif is_repeated(wall, entry.zone):
        found.append(f"{wall:%H:%M} comes twice; it starts at the first")
    if is_skipped(end, entry.zone):
        here = shown_at(whole.end, entry.zone)
        found.append(f"{end:%H:%M} is skipped by the clock; it ends at {here:%H:%M}")
    elif is_repeated(end, entry.zone):
        which = "last" if entry.effect is Effect.FREEZE else "first"
        found.append(f"{end:%H:%M} comes twice; it ends at the {which}")
    if whole.length != entry.duration:
        kind = "longer" if whole.length > entry.duration else "shorter"
        lasts, usual = length_in_words(whole.length), length_in_words(entry.duration)
        found.append(f"clocks are changed: {kind} than usual, {lasts} instead of {usual}")
    return found


def _note_on_hour(span: Span, zone: str) -> str:
    wall = shown_at(span.start, zone)
    if not is_repeated(wall, zone):
        return ""
    which = "first" if moment_at(wall, zone) == span.start else "second"
    return f"{wall:%H:%M} comes twice; this is the {which}"


def in_words(entry: Entry) -> str:
    """Return an entry in words; raises WindowError for a broken rule."""
    length = length_in_words(entry.duration)
    if not entry.rule:
        said = f"once, on {entry.starts:%Y-%m-%d} at {_time(entry.starts)}"
    else:
        said = _rule_in_words(read_rule(entry.rule), entry.starts)
    said += f", for {length}, {entry.zone}"
    if entry.added:
        said += f", and {counted(len(entry.added), 'more date')}"
    if entry.excluded:
        said += f", but for {counted(len(entry.excluded), 'date')}"
    if entry.valid_from is not None:
        said += f", valid from {_moment(entry.valid_from, entry.zone)}"
    if entry.valid_until is not None:
        said += f", valid until {_moment(entry.valid_until, entry.zone)}"
    return said


def length_in_words(length: timedelta) -> str:
    """Return a length of time such as `1 d 6 h` or `45 min`."""
    seconds = length.total_seconds()
    found = []
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        count, seconds = divmod(seconds, size)
        if count:
            found.append(f"{count:.0f} {unit}")
    if seconds:
        found.append(f"{seconds:g} s")
    return " ".join(found) or "0 s"


def _rule_in_words(rule: Rule, starts: datetime) -> str:
    unit = _UNITS[rule.frequency]
    said = f"every {unit}" if rule.interval == 1 else f"every {rule.interval:,} {unit}s"
    if rule.frequency in SUB_DAILY:
        said += f" of elapsed time from {starts:%Y-%m-%d} {_time(starts)}"
    else:
        said += _days(rule, starts) + f" at {_times(rule, starts)}"
        if "bysetpos" in rule.by:
            said += f", of these the {_and(map(_place, rule.by['bysetpos']))}"
    if rule.count is not None:
        said += f", {counted(rule.count, 'time')}"
    if rule.until is not None:
        shown = f"{rule.until:%Y-%m-%d %H:%M}"
        said += f", until {shown} UTC" if rule.until.tzinfo else f", until {shown}"
    return said


def _days(rule: Rule, starts: datetime) -> str:
    by = rule.by
    said = ""
    if "byweekday" in by:
        days = [
            (f"the {_place(day.n)} " if day.n else "") + _DAYS[day.weekday]
            for day in by["byweekday"]
        ]
        said += f" on {_and(days)}"
    if "bymonthday" in by:
        said += f" on the {_and(map(_day, by['bymonthday']))}"
    if "byyearday" in by:
        said += f" on the {_and(map(_day, by['byyearday']))} of the year"
    if "byweekno" in by:
        said += f" in week {_and(map(str, by['byweekno']))}"
    if not said and rule.frequency == "WEEKLY":
        said = f" on {_DAYS[starts.weekday()]}"
    elif not said and rule.frequency in {"MONTHLY", "YEARLY"}:
        said = f" on the {_day(starts.day)}"
    if "bymonth" in by:
        said += f" in {_and(_MONTHS[month - 1] for month in by['bymonth'])}"
    elif rule.frequency == "YEARLY" and not by.keys() - {"byhour", "byminute", "bysecond"}:
        said += f" of {_MONTHS[starts.month - 1]}"
    return said


def _times(rule: Rule, starts: datetime) -> str:
    by = rule.by
    times = [
        starts.replace(hour=hour, minute=minute, second=second)
        for hour in sorted(by.get("byhour", (starts.hour,)))
        for minute in sorted(by.get("byminute", (starts.minute,)))
        for second in sorted(by.get("bysecond", (starts.second,)))
    ]
    if len(times) > 6:
        return f"{len(times)} times of the day from {_time(times[0])} to {_time(times[-1])}"
    return _and(map(_time, times))


def _time(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"


def _day(number: int) -> str:
    return _ordinal(number) if number > 0 else f"{_place(number)} day"


def _place(number: int) -> str:
    if number > 0:
        return _ordinal(number)
    return "last" if number == -1 else f"{_ordinal(-number)} to last"


def _ordinal(number: int) -> str:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def _and(words: Iterable[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def _moment(moment: datetime, zone: str) -> str:
    return f"{shown_at(moment, zone):%Y-%m-%d %H:%M}"
