"""The events of one UID as windows: one for the series, one for each exception."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from itertools import product
from typing import Final

from jobs.calendars.ical.events import Event
from jobs.calendars.ical.times import Time
from jobs.core.errors import IcalError, WindowError
from jobs.windows import Effect, Entry, checked
from jobs.windows.rrule import first_two
from jobs.windows.rules import SUB_DAILY, normal_text, read_rule
from jobs.windows.validation import MOST_DATES

NAMES: Final = {
    "starts": "DTSTART",
    "zone": "DTSTART",
    "duration": "its length",
    "rule": "RRULE",
    "excluded": "EXDATE",
    "added": "RDATE",
}


@dataclass(frozen=True, slots=True)
class ImportedWindow:
    """A window or freeze, identified by `uid`; `note` says where it differs from the file."""

    line: int
    uid: str
    entry: Entry
    note: str = ""


def windows_of(events: Sequence[Event], *, effect: Effect) -> Iterator[ImportedWindow]:
    """Yield the windows of the events of one UID; raises IcalError with the line that is wrong.

    A replaced occurrence is excluded from its series, and is a window of its own unless it is
    cancelled. A cancelled series makes no window, and neither do its exceptions.
    """
    newest = _newest(one for one in events if one.replaces is None)
    if len(newest) > 1:
        raise _twice(newest[1])
    series = newest[0] if newest else None
    if series is not None and series.is_cancelled:
        return
    others = _replacing(events, series)
    if series is not None:
        yield from _series(series, others, effect=effect)
    for other in others:
        if not other.is_cancelled and other.replaces is not None:
            uid = _key(other.uid, _replaced(other.replaces, series))
            yield from _series(replace(other, uid=uid), (), effect=effect)


def _newest(events: Iterable[Event]) -> list[Event]:
    """Return the events with the highest SEQUENCE, without duplicates."""
    found = list(events)
    newest = max((one.sequence for one in found), default=0)
    return list(dict.fromkeys(one for one in found if one.sequence == newest))


def _replacing(events: Sequence[Event], series: Event | None) -> list[Event]:
    """Return the newest exception for each replaced occurrence."""
    by_time: dict[datetime, list[Event]] = {}
    for one in events:
        if one.replaces is not None:
            by_time.setdefault(_replaced(one.replaces, series), []).append(one)
    found = []
    for some in by_time.values():
        [newest, *twice] = _newest(some)
        if twice:
            raise _twice(twice[0])
        found.append(newest)
    return found


def _series(event: Event, others: Sequence[Event], *, effect: Effect) -> Iterator[ImportedWindow]:
    """Yield the window of an event without what `others` replace, and those of its periods."""
    start = _start(event)
    excluded = [*event.excluded, *(one.replaces for one in others if one.replaces is not None)]
    try:
        rule = normal_text(event.rule)
        out = {wall for one in excluded for wall in _walls(one, event, rule)}
        periods = [
            (time_, length) for time_, length in event.added if length not in {None, event.length}
        ]
        usual = [time_ for time_, length in event.added if length in {None, event.length}]
        entry, note = _moved(
            Entry(
                effect,
                starts=start.wall,
                duration=event.length,
                zone=start.zone,
                rule=rule,
                excluded=tuple(out),
                added=tuple(_wall(one, start) for one in usual),
                reason=event.reason,
            )
        )
        try:
            yield ImportedWindow(event.line, event.uid, checked(entry), note)
        except WindowError as error:
            # With dates within their limits, this says that no occurrence is left. That is
            # right here: exceptions may replace all of them.
            if error.field != "excluded" or len(out) > MOST_DATES:
                raise
    except WindowError as error:
        raise _refused(event, error) from error
    for time_, length in periods:
        if time_.by(start.zone) not in out and length is not None:
            uid = _key(event.uid, time_.moment)
            single = replace(event, uid=uid, start=time_, length=length, rule="")
            yield from _series(replace(single, excluded=(), added=()), (), effect=effect)


def _moved(entry: Entry) -> tuple[Entry, str]:
    """Return the entry with its start at the first time of its rule, and a note if it moved."""
    if not entry.rule or read_rule(entry.rule).frequency in SUB_DAILY:
        return entry, ""
    found = first_two(entry.rule, entry.starts)
    if not found or found[0] == entry.starts:
        return entry, ""
    note = f"DTSTART is no time of its RRULE; it begins with the first one, {found[0]}"
    return replace(entry, starts=found[0]), note


def _walls(one: Time, event: Event, rule: str) -> Iterator[datetime]:
    """Yield the wall times of the occurrences that a date or time of an exception means."""
    start = _start(event)
    if start.is_date or not one.is_date or not rule:
        yield _wall(one, start)
        return
    known = read_rule(rule)
    if known.frequency in SUB_DAILY:
        raise WindowError("excluded", "is a date; of a rule in hours or minutes, give times")
    usual = start.wall.time()
    names = {"byhour": usual.hour, "byminute": usual.minute, "bysecond": usual.second}
    for of_day in product(*(known.by.get(name, (value,)) for name, value in names.items())):
        yield datetime.combine(one.wall, time(*of_day))


def _wall(one: Time, start: Time) -> datetime:
    """Return the wall time of the occurrence of a series that a date or time means."""
    if one.is_date and not start.is_date:
        return datetime.combine(one.wall, start.wall.time())
    return datetime.combine(one.wall, time()) if start.is_date else one.by(start.zone)


def _replaced(one: Time, series: Event | None) -> datetime:
    """Return the start of the occurrence that a RECURRENCE-ID means."""
    start = series.start if series is not None else None
    if start is None:
        return one.moment
    return Time(_wall(one, start), start.zone).moment


def _start(event: Event) -> Time:
    if event.start is None:
        raise IcalError(event.line, "the event that begins here has no DTSTART; add one")
    return event.start


def _key(uid: str, moment: datetime) -> str:
    return f"{uid} {moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _twice(event: Event) -> IcalError:
    return IcalError(
        event.line,
        f"the event {event.uid[:60]!a} that begins here is in the file twice, with the same "
        "SEQUENCE and another content; remove one of them",
    )


def _refused(event: Event, error: WindowError) -> IcalError:
    name = NAMES.get(error.field, error.field)
    field = error.field
    if field == "excluded" and field not in event.lines:
        field = "replaces"
    return IcalError(
        event.line_of(field),
        f"{name} of the event that begins in line {event.line} {error.problem}; "
        "correct it, or take the event out",
    )
