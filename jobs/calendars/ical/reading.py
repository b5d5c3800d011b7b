"""From a file's bytes to the windows of its events, or to all problems in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from jobs.calendars.ical.components import Component, components
from jobs.calendars.ical.events import Event, event_of
from jobs.calendars.ical.lines import lines
from jobs.calendars.ical.series import ImportedWindow, windows_of
from jobs.calendars.ical.times import Zones
from jobs.core.errors import IcalError
from jobs.windows import Effect

SIZE_LIMIT: Final = 2**20
EVENT_LIMIT: Final = 5_000
"""Events in a file, and also the windows that they make."""
PROBLEM_LIMIT: Final = 100
"""Problems in one error."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The windows or freezes of a file, in its order."""

    windows: tuple[ImportedWindow, ...]

    @property
    def notes(self) -> tuple[tuple[int, str], ...]:
        """Where a window differs from the file: the line of its event, with a sentence."""
        return tuple((one.line, one.note) for one in self.windows if one.note)


def read(data: bytes, *, zone: str, effect: Effect) -> Reading:
    """Return the windows or freezes of a file; raises IcalError with all problems.

    `zone` is that of times and days without one.
    """
    if len(data) > SIZE_LIMIT:
        raise IcalError(None, f"has {len(data):,} bytes, the limit is {SIZE_LIMIT:,}; split it")
    parts = components(lines(data))
    zones = Zones((part for part in parts if part.name == "VTIMEZONE"), own=zone)
    events = [part for part in parts if part.name == "VEVENT"]
    if len(events) > EVENT_LIMIT:
        limits = f"event {EVENT_LIMIT + 1:,}, the limit is {EVENT_LIMIT:,}"
        raise IcalError(events[EVENT_LIMIT].line, f"is the beginning of {limits}; split the file")
    return Reading(_windows(_by_uid(events, zones), effect))


def _by_uid(parts: Iterable[Component], zones: Zones) -> list[list[Event]]:
    by_uid: dict[str, list[Event]] = {}
    wrong: list[IcalError] = []
    for part in parts:
        try:
            event = event_of(part, zones)
            by_uid.setdefault(event.uid, []).append(event)
        except IcalError as error:
            wrong.append(error)
    _refuse(wrong)
    return list(by_uid.values())


def _windows(by_uid: Iterable[list[Event]], effect: Effect) -> tuple[ImportedWindow, ...]:
    found: list[ImportedWindow] = []
    wrong: list[IcalError] = []
    for events in by_uid:
        try:
            # A single event may make too many: stop one above the limit.
            found.extend(islice(windows_of(events, effect=effect), EVENT_LIMIT + 1 - len(found)))
        except IcalError as error:
            wrong.append(error)
        if len(found) > EVENT_LIMIT:
            problem = f"the events so far make more than {EVENT_LIMIT:,} windows; split the file"
            raise IcalError(events[0].line, problem)
    known: dict[str, ImportedWindow] = {}
    wrong += [
        IcalError(one.line, f"UID {one.uid[:60]!a} is that of line {known[one.uid].line}")
        for one in found
        if known.setdefault(one.uid, one) is not one
    ]
    _refuse(wrong)
    return tuple(sorted(found, key=lambda one: one.line))


def _refuse(wrong: list[IcalError]) -> None:
    if wrong:
        first, *rest = sorted((error.line or 0, error.problem) for error in wrong)[:PROBLEM_LIMIT]
        raise IcalError(*first, *rest)
