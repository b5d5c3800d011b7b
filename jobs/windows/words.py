"""A window or freeze in words, and notes on occurrences around a change of the clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from jobs.core.phrases import Phrase, counted_phrase, forms, joined, phrase, phrase_for
from jobs.windows.entries import Effect, Entry, Span
from jobs.windows.occurrences import FARTHEST, all_occurrences
from jobs.windows.rules import SUB_DAILY, Rule, read_rule
from jobs.windows.wall_clock import is_repeated, is_skipped, moment_at, shown_at

_UNITS: Final = {
    "YEARLY": forms("every year", "every %(count)s years"),
    "MONTHLY": forms("every month", "every %(count)s months"),
    "WEEKLY": forms("every week", "every %(count)s weeks"),
    "DAILY": forms("every day", "every %(count)s days"),
    "HOURLY": forms("every hour", "every %(count)s hours"),
    "MINUTELY": forms("every minute", "every %(count)s minutes"),
}
_DAYS: Final = (
    phrase("Monday"),
    phrase("Tuesday"),
    phrase("Wednesday"),
    phrase("Thursday"),
    phrase("Friday"),
    phrase("Saturday"),
    phrase("Sunday"),
)
_MONTHS: Final = (
    phrase("January"),
    phrase("February"),
    phrase("March"),
    phrase("April"),
    phrase("May"),
    phrase("June"),
    phrase("July"),
    phrase("August"),
    phrase("September"),
    phrase("October"),
    phrase("November"),
    phrase("December"),
)


def notes(entry: Entry, span: Span) -> str:
    """Return notes on clock changes in an occurrence, clipped or not; mostly an empty text."""
    if entry.rule and read_rule(entry.rule).frequency in SUB_DAILY:
        return _note_on_hour(span, entry.zone)
    start = span.start - entry.duration - FARTHEST
    for wall, whole in all_occurrences(entry, start=start, end=span.end):
        if whole.start <= span.start and whole.end >= span.end:
            return joined(_notes(entry, wall, whole), "; ")
    return ""


def _notes(entry: Entry, wall: datetime, whole: Span) -> list[Phrase]:
    end = wall + entry.duration
    at, until = f"{wall:%H:%M}", f"{end:%H:%M}"
    found = []
    if is_skipped(wall, entry.zone):
        here = shown_at(whole.start, entry.zone)
        found.append(
            phrase(
                "%(at)s is skipped by the clock; it starts right after, at %(here)s",
                at=at,
                here=f"{here:%H:%M}",
            )
        )
    elif is_repeated(wall, entry.zone):
        found.append(phrase("%(at)s comes twice; it starts at the first", at=at))
    if is_skipped(end, entry.zone):
        here = shown_at(whole.end, entry.zone)
        found.append(
            phrase(
                "%(until)s is skipped by the clock; it ends at %(here)s",
                until=until,
                here=f"{here:%H:%M}",
            )
        )
    elif is_repeated(end, entry.zone):
        if entry.effect is Effect.FREEZE:
            found.append(phrase("%(until)s comes twice; it ends at the last", until=until))
        else:
            found.append(phrase("%(until)s comes twice; it ends at the first", until=until))
    if whole.length != entry.duration:
        found.append(_changed_length(whole.length, usual=entry.duration))
    return found


def _changed_length(length: timedelta, *, usual: timedelta) -> Phrase:
    values = {"lasts": length_in_words(length), "usual": length_in_words(usual)}
    if length > usual:
        return phrase(
            "clocks are changed: longer than usual, %(lasts)s instead of %(usual)s", **values
        )
    return phrase(
        "clocks are changed: shorter than usual, %(lasts)s instead of %(usual)s", **values
    )


def _note_on_hour(span: Span, zone: str) -> str:
    wall = shown_at(span.start, zone)
    if not is_repeated(wall, zone):
        return ""
    here = f"{wall:%H:%M}"
    if moment_at(wall, zone) == span.start:
        return phrase("%(here)s comes twice; this is the first", here=here)
    return phrase("%(here)s comes twice; this is the second", here=here)


def in_words(entry: Entry) -> Phrase:
    """Return an entry in words; raises WindowError for a broken rule."""
    length = length_in_words(entry.duration)
    parts: list[str]
    if not entry.rule:
        date, time = f"{entry.starts:%Y-%m-%d}", _time(entry.starts)
        parts = [phrase("once, on %(date)s at %(time)s", date=date, time=time)]
    else:
        parts = [_rule_in_words(read_rule(entry.rule), entry.starts)]
    parts += [phrase("for %(length)s", length=length), entry.zone]
    if count := len(entry.added):
        parts.append(counted_phrase("and %(count)s more date", "and %(count)s more dates", count))
    if count := len(entry.excluded):
        parts.append(counted_phrase("but for %(count)s date", "but for %(count)s dates", count))
    if entry.valid_from is not None:
        moment = _moment(entry.valid_from, entry.zone)
        parts.append(phrase("valid from %(moment)s", moment=moment))
    if entry.valid_until is not None:
        moment = _moment(entry.valid_until, entry.zone)
        parts.append(phrase("valid until %(moment)s", moment=moment))
    return joined(parts, ", ")


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


def _rule_in_words(rule: Rule, starts: datetime) -> Phrase:
    every = counted_phrase(*_UNITS[rule.frequency], rule.interval)
    if rule.frequency in SUB_DAILY:
        start = f"{starts:%Y-%m-%d} {_time(starts)}"
        parts = [phrase("%(every)s of elapsed time from %(start)s", every=every, start=start)]
    else:
        times = phrase("at %(times)s", times=_times(rule, starts))
        parts = [joined([every, *_days(rule, starts), times], " ")]
        if "bysetpos" in rule.by:
            places = _and(map(_place, rule.by["bysetpos"]))
            parts.append(phrase("of these the %(places)s", places=places))
    if rule.count is not None:
        parts.append(counted_phrase("%(count)s time", "%(count)s times", rule.count))
    if rule.until is not None:
        zone = " UTC" if rule.until.tzinfo else ""
        parts.append(phrase("until %(moment)s", moment=f"{rule.until:%Y-%m-%d %H:%M}{zone}"))
    return joined(parts, ", ")


def _days(rule: Rule, starts: datetime) -> list[Phrase]:
    by = rule.by
    parts = []
    if "byweekday" in by:
        parts.append(phrase("on %(days)s", days=_and(map(_weekday, by["byweekday"]))))
    if "bymonthday" in by:
        parts.append(phrase("on the %(days)s", days=_and(map(_day, by["bymonthday"]))))
    if "byyearday" in by:
        days = _and(map(_day, by["byyearday"]))
        parts.append(phrase("on the %(days)s of the year", days=days))
    if "byweekno" in by:
        parts.append(phrase("in week %(weeks)s", weeks=_and(map(str, by["byweekno"]))))
    if not parts and rule.frequency == "WEEKLY":
        parts.append(phrase("on %(days)s", days=_DAYS[starts.weekday()]))
    elif not parts and rule.frequency in {"MONTHLY", "YEARLY"}:
        parts.append(phrase("on the %(days)s", days=_day(starts.day)))
    if "bymonth" in by:
        months = _and(_MONTHS[month - 1] for month in by["bymonth"])
        parts.append(phrase("in %(months)s", months=months))
    elif rule.frequency == "YEARLY" and not by.keys() - {"byhour", "byminute", "bysecond"}:
        parts.append(phrase("of %(month)s", month=_MONTHS[starts.month - 1]))
    return parts


def _weekday(day: Any) -> Phrase:
    name = _DAYS[day.weekday]
    return phrase("the %(place)s %(day)s", place=_place(day.n), day=name) if day.n else name


def _times(rule: Rule, starts: datetime) -> Phrase:
    by = rule.by
    times = [
        starts.replace(hour=hour, minute=minute, second=second)
        for hour in sorted(by.get("byhour", (starts.hour,)))
        for minute in sorted(by.get("byminute", (starts.minute,)))
        for second in sorted(by.get("bysecond", (starts.second,)))
    ]
    if len(times) > 6:
        return phrase(
            "%(count)s times of the day from %(first)s to %(last)s",
            count=len(times),
            first=_time(times[0]),
            last=_time(times[-1]),
        )
    return _and(map(_time, times))


def _time(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"


def _day(number: int) -> Phrase:
    if number > 0:
        return _ordinal(number)
    return phrase("%(place)s day", place=_place(number))


def _place(number: int) -> Phrase:
    if number > 0:
        return _ordinal(number)
    if number == -1:
        return phrase_for("last", "last one")
    return phrase("%(place)s to last", place=_ordinal(-number))


def _ordinal(number: int) -> Phrase:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return phrase_for(f"{number}{ending}", "number %(number)s", number=str(number))


def _and(words: Iterable[str]) -> Phrase:
    *some, last = words
    if not some:
        return joined([last], "")
    return phrase("%(some)s and %(last)s", some=joined(some, ", "), last=last)


def _moment(moment: datetime, zone: str) -> str:
    return f"{shown_at(moment, zone):%Y-%m-%d %H:%M}"
