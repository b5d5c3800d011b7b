"""Times, periods, lengths and zones, read from the value of a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from icalendar import vDate, vDatetime, vDuration
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from jobs.calendars.ical.components import Component
from jobs.calendars.ical.lines import ContentLine
from jobs.core.errors import IcalError
from jobs.core.zones import zone_names
from jobs.windows.rrule import FIRST_MOMENT, LAST_MOMENT
from jobs.windows.wall_clock import moment_at, shown_at

_DATE: Final = re.compile(r"[0-9]{8}")
_TIME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z?")
_LENGTH: Final = re.compile(r"\+?P[0-9WDTHMS]{2,40}")
DAY: Final = timedelta(days=1)
NAME_LIMIT: Final = 255
"""Characters: a longer zone name is not searched for an IANA name at its end."""
_LONGEST: Final = 36_500 * DAY
"""No sum of a start and such a length overflows; the limit of a window is lower."""


@dataclass(frozen=True, slots=True)
class Time:
    """A time on the clock of a zone; midnight for a date."""

    wall: datetime
    zone: str
    is_date: bool = False

    @property
    def moment(self) -> datetime:
        return moment_at(self.wall, self.zone)

    def by(self, zone: str) -> datetime:
        """Return the time on the clock of another zone."""
        return self.wall if zone == self.zone else shown_at(self.moment, zone)


class Zones:
    """The zones of a file, by their names in it."""

    def __init__(self, components: Iterable[Component], *, own: str) -> None:
        """Read the VTIMEZONEs of a file; `own` is the zone of times without one."""
        self.own = own
        self._known: dict[str, str] = {}
        for component in components:
            name, place = component.one("TZID"), component.one("X-LIC-LOCATION")
            if component.name == "VTIMEZONE" and name and place and place.text in zone_names():
                self._known[name.text] = place.text

    def named(self, name: str, *, line: int) -> str:
        """Return the IANA name of a zone; raises IcalError for an unknown one.

        Takes IANA names, also behind a program's name (`/vendor/Europe/Berlin`), Windows' names,
        and the X-LIC-LOCATION of the VTIMEZONE. Its offsets are not read: they are of one year.
        """
        if name in zone_names():
            return name
        # A long name may have many slashes, and each would be tried.
        ends = name.strip("/").split("/") if len(name) <= NAME_LIMIT else []
        for known in (
            self._known.get(name),
            WINDOWS_TO_OLSON.get(name),
            *("/".join(ends[start:]) for start in range(len(ends)) if name.startswith("/")),
        ):
            if known in zone_names():
                return known
        problem = f"{name[:60]!a} is no known time zone; use an IANA name such as Europe/Berlin"
        raise IcalError(line, problem)


def times(line: ContentLine, zones: Zones) -> list[tuple[Time, timedelta | None]]:
    """Return the times of a line, separated by commas; periods with their lengths."""
    parameters, values = line.parts
    zone = zones.own
    if "TZID" in parameters:
        zone = zones.named(parameters["TZID"], line=line.number)
    return [_period(value.strip(), zone, line=line) for value in values.split(",")]


def one_time(line: ContentLine, zones: Zones) -> Time:
    found = times(line, zones)
    if len(found) != 1 or found[0][1] is not None:
        raise IcalError(line.number, f"{line.name} is one date or one time; correct the line")
    return found[0][0]


def length_to(start: Time, end: Time) -> timedelta:
    """Return the length from start to end, by the clock of the start."""
    return end.by(start.zone) - start.wall


def length_of(start: Time, duration: timedelta, *, is_once: bool) -> timedelta:
    """Return the length of a DURATION by the clock of its start.

    RFC 5545 counts days by the clock, and the rest in elapsed time. We do so for a single event; a
    recurring one ends by the clock each time.
    """
    rest = duration - duration.days * DAY
    if start.is_date or not is_once or not rest:
        return duration
    days = Time(start.wall + duration.days * DAY, start.zone)
    return shown_at(days.moment + rest, start.zone) - start.wall


def _period(text: str, zone: str, *, line: ContentLine) -> tuple[Time, timedelta | None]:
    first, slash, last = text.partition("/")
    start = _time(first, zone, line=line)
    if not slash:
        return start, None
    if "P" in last:
        return start, length_of(start, length(last, line=line), is_once=True)
    return start, length_to(start, _time(last, zone, line=line))


def _time(text: str, zone: str, *, line: ContentLine) -> Time:
    try:
        if _DATE.fullmatch(text):
            found = Time(datetime.combine(vDate.from_ical(text), time()), zone, is_date=True)
        elif _TIME.fullmatch(text):
            wall = vDatetime.from_ical(text.removesuffix("Z"))
            found = Time(wall, "UTC" if text.endswith("Z") else zone)
        else:
            takes = "20261231, 20261231T220000 or 20261231T210000Z"
            raise IcalError(line.number, f"{line.name} has {text[:40]!a}; it takes {takes}")
    except ValueError as error:
        problem = f"{line.name} has {text[:40]!a}, which does not exist; correct it"
        raise IcalError(line.number, problem) from error
    if not FIRST_MOMENT + DAY <= found.wall.replace(tzinfo=UTC) < LAST_MOMENT - DAY:
        raise IcalError(line.number, f"{line.name} has {text[:40]!a}; it takes 1970 to 2099")
    return found


def length(text: str, *, line: ContentLine) -> timedelta:
    """Return the length in a DURATION or a period."""
    try:
        if _LENGTH.fullmatch(text):
            found: timedelta = vDuration.from_ical(text)
            if found <= _LONGEST:
                return found
    except (ValueError, OverflowError):
        pass
    raise IcalError(line.number, f"{line.name} has {text[:40]!a}; it takes PT8H or P1D, above 0")
