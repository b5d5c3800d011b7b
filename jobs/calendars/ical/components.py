"""The components of a file, from BEGIN to END: its events and zones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from jobs.calendars.ical.lines import ContentLine
from jobs.core.errors import IcalError

_READ: Final = frozenset({"VEVENT", "VTIMEZONE"})
MOST_DEEP: Final = 20


@dataclass(frozen=True, slots=True)
class Component:
    """A component that begins in a line, with its lines by name, without nested components."""

    name: str
    line: int
    properties: dict[str, list[ContentLine]] = field(default_factory=dict)

    def one(self, name: str) -> ContentLine | None:
        """Return the line of a property that may occur once."""
        found = self.properties.get(name, [])
        if len(found) > 1:
            raise IcalError(
                found[1].number,
                f"{name} stands twice in the {self.name} that begins in line {self.line}; "
                "remove one of them",
            )
        return found[0] if found else None

    def all(self, name: str) -> list[ContentLine]:
        """Return the lines of a property that may occur several times."""
        return self.properties.get(name, [])


def components(lines: Iterable[ContentLine]) -> list[Component]:
    """Return the events and zones of a file's calendars, in order; raises IcalError.

    Other components are ignored, but must begin and end properly: a truncated file is refused.
    """
    found: list[Component] = []
    stack: list[Component] = []
    is_calendar = False
    for line in lines:
        if line.name == "BEGIN":
            begun = Component(line.value.upper(), line.number)
            if not stack and begun.name != "VCALENDAR":
                raise _no_calendar(line.number)
            if len(stack) == MOST_DEEP:
                raise IcalError(line.number, f"{begun.name[:40]!a} lies too deep inside others")
            if len(stack) == 1 and begun.name in _READ:
                found.append(begun)
            is_calendar = True
            stack.append(begun)
        elif not stack:
            raise _no_calendar(line.number)
        elif line.name == "END":
            last = stack.pop()
            if line.value.upper() != last.name:
                raise IcalError(
                    line.number,
                    f"END:{line.value[:40]} where {last.name}, begun in line {last.line}, should "
                    "end; export the file again",
                )
        elif stack[-1].name in _READ:
            stack[-1].properties.setdefault(line.name, []).append(line)
    if stack:
        raise IcalError(
            stack[-1].line,
            f"{stack[-1].name[:40]} begins here and does not end: the file was cut off; "
            "export it again",
        )
    if not is_calendar:
        raise IcalError(None, "is empty; an iCalendar file begins with BEGIN:VCALENDAR")
    return found


def _no_calendar(number: int) -> IcalError:
    return IcalError(
        number, "stands outside of BEGIN:VCALENDAR and END:VCALENDAR; is this an .ics file?"
    )
