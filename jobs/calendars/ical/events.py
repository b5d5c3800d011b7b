"""One event, read from its lines; `series` makes windows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Final

from jobs.calendars.ical.components import Component
from jobs.calendars.ical.times import (
    DAY,
    Time,
    Zones,
    length,
    length_of,
    length_to,
    one_time,
    times,
)
from jobs.core.errors import IcalError
from jobs.core.inputs import REASON_LIMIT

UID_LIMIT: Final = 450


@dataclass(frozen=True, slots=True)
class Event:
    """An event, or with `replaces` an exception: one occurrence that differs from its series.

    `lines` has the numbers of its lines by the fields of a window.
    """

    uid: str
    replaces: Time | None
    sequence: int
    is_cancelled: bool
    start: Time | None
    length: timedelta
    rule: str
    excluded: tuple[Time, ...]
    added: tuple[tuple[Time, timedelta | None], ...]
    reason: str
    line: int = field(compare=False)
    lines: Mapping[str, int] = field(compare=False)

    def __post_init__(self) -> None:
        if self.start is None and not self.is_cancelled:
            raise IcalError(self.line, "the event that begins here has no DTSTART; add one")

    def line_of(self, what: str) -> int:
        """Return the line of a field, or the one in which the event begins."""
        return self.lines.get(what, self.line)


def event_of(component: Component, zones: Zones) -> Event:
    """Return the event of a VEVENT; raises IcalError with the line that is wrong."""
    uid = component.one("UID")
    if uid is None or not uid.text:
        raise IcalError(
            component.line,
            "the event that begins here has no UID, by which it is known again when the file "
            "is imported once more; add one",
        )
    if len(uid.text) > UID_LIMIT:
        raise IcalError(uid.number, f"UID has {len(uid.text):,} characters, limit {UID_LIMIT}")
    status, summary = component.one("STATUS"), component.one("SUMMARY")
    is_cancelled = status is not None and status.value.upper() == "CANCELLED"
    found, start_line = component.one("RECURRENCE-ID"), component.one("DTSTART")
    if found is not None and "RANGE" in found.parts[0]:
        raise IcalError(
            found.number,
            "RANGE=THISANDFUTURE changes all that come after and cannot be read; end the series "
            "there with UNTIL and begin another one",
        )
    replaces = one_time(found, zones) if found is not None else None
    start = one_time(start_line, zones) if start_line is not None and not is_cancelled else None
    return Event(
        uid=uid.text,
        replaces=replaces,
        sequence=_sequence(component),
        is_cancelled=is_cancelled,
        start=start,
        length=_length(component, start, zones) if start is not None else DAY,
        rule=_rule(component, is_one=replaces is not None),
        excluded=tuple(one for line in component.all("EXDATE") for one, _ in times(line, zones)),
        added=tuple(chain.from_iterable(times(line, zones) for line in component.all("RDATE"))),
        reason=_reason(summary.text) if summary is not None else "",
        line=component.line,
        lines=_lines(component),
    )


def _length(component: Component, start: Time, zones: Zones) -> timedelta:
    end, duration = component.one("DTEND"), component.one("DURATION")
    if end is not None and duration is not None:
        raise IcalError(duration.number, "DURATION beside DTEND; RFC 5545 allows one of them")
    if duration is not None:
        is_once = "RRULE" not in component.properties and "RDATE" not in component.properties
        return length_of(start, length(duration.value, line=duration), is_once=is_once)
    if end is None:
        if start.is_date:
            return DAY
        problem = "the event that begins here has no DTEND and no DURATION; add one"
        raise IcalError(component.line, problem)
    until = one_time(end, zones)
    if until.is_date != start.is_date:
        raise IcalError(end.number, "DTEND and DTSTART are not both dates, or both times")
    return length_to(start, until)


def _rule(component: Component, *, is_one: bool) -> str:
    for name in ("EXRULE", *(("RRULE", "RDATE", "EXDATE") if is_one else ())):
        for line in component.all(name):
            why = "beside RECURRENCE-ID, which is of one occurrence" if is_one else "is out of use"
            problem = f"{name} {why}; say it with RRULE and EXDATE of the series"
            raise IcalError(line.number, problem)
    rule = component.one("RRULE")
    return rule.value if rule is not None else ""


def _sequence(component: Component) -> int:
    line = component.one("SEQUENCE")
    if line is None:
        return 0
    if not (line.value.isascii() and line.value.isdigit() and len(line.value) <= 9):
        raise IcalError(line.number, f"SEQUENCE is a whole number, not {line.value[:40]!a}")
    return int(line.value)


def _reason(text: str) -> str:
    """Return a summary as one printable line of at most REASON_LIMIT characters."""
    line = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    return line if len(line) <= REASON_LIMIT else f"{line[: REASON_LIMIT - 1]}…"


def _lines(component: Component) -> dict[str, int]:
    words = {
        "zone": "DTSTART",
        "starts": "DTSTART",
        "duration": "DURATION" if "DURATION" in component.properties else "DTEND",
        "rule": "RRULE",
        "excluded": "EXDATE",
        "added": "RDATE",
        "reason": "SUMMARY",
        "replaces": "RECURRENCE-ID",
    }
    return {
        word: component.properties[name][0].number
        for word, name in words.items()
        if name in component.properties
    }
