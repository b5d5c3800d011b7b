"""What is to be different in a replay, read from texts such as `acme=2`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from jobs.core.errors import OptionError
from jobs.windows import CalendarHours, Effect, Entry, WindowError, checked
from jobs.windows.rules import DAYS

MOST_SLOTS: Final = 10_000
MOST_WEIGHT: Final = 1_000
MOST_CAP: Final = 1_000_000
MOST_SECONDS: Final = 7 * 86_400
ALWAYS: Final = "always"

_WINDOW: Final = re.compile(
    r"(?:(?P<days>[a-z]{2,3}(?:[,-][a-z]{2,3})*) )?"
    r"(?P<from>[0-2]\d:[0-5]\d)-(?P<to>[0-2]\d:[0-5]\d)",
    re.ASCII,
)
_FIRST: Final = datetime(2001, 1, 1)  # noqa: DTZ001  a Monday, by the clock of its zone
WINDOW_RULE: Final = "is NAME=HH:MM-HH:MM, NAME=mon-fri HH:MM-HH:MM or NAME=always"


@dataclass(frozen=True, slots=True)
class WindowChange:
    """The new windows of a calendar; none: it is always open, but for its freezes."""

    days: tuple[str, ...] = ()
    start: str = ""
    length: timedelta = timedelta(0)

    def entry(self, zone: str) -> Entry:
        hour, minute = map(int, self.start.split(":"))
        rule = f"FREQ=WEEKLY;BYDAY={','.join(self.days)}"
        first = _FIRST + timedelta(days=DAYS.index(self.days[0]), hours=hour, minutes=minute)
        return checked(Entry(Effect.WINDOW, first, self.length, zone, rule))


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Weights and caps by owner (a cap of 0: none), windows by calendar; None: as recorded."""

    slots: int | None = None
    weights: dict[str, int] = field(default_factory=dict)
    caps: dict[str, int] = field(default_factory=dict)
    windows: dict[str, list[WindowChange]] = field(default_factory=dict)


def read_changes(
    *,
    slots: int | None = None,
    weights: Sequence[str] = (),
    caps: Sequence[str] = (),
    windows: Sequence[str] = (),
) -> Changes:
    """Return the changes that texts describe; raise OptionError with the option's name."""
    if slots is not None and not 1 <= slots <= MOST_SLOTS:
        raise OptionError("slots", f"is 1 to {MOST_SLOTS:,}, not {slots:,}")
    by_calendar: dict[str, list[WindowChange]] = {}
    for text in windows:
        name, change = _window(text)
        by_calendar.setdefault(name, []).extend([change] if change else [])
    return Changes(
        slots=slots,
        weights=dict(_number("weight", text, least=1, most=MOST_WEIGHT) for text in weights),
        caps=dict(_number("cap", text, least=0, most=MOST_CAP) for text in caps),
        windows=by_calendar,
    )


def changed_hours(
    hours: CalendarHours, changes: Sequence[WindowChange], *, zone: str
) -> CalendarHours:
    """Return the hours with other windows; freezes stay."""
    freezes = [entry for entry in hours.entries if entry.effect == Effect.FREEZE]
    return CalendarHours((*(one.entry(zone) for one in changes), *freezes), cut_off=hours.cut_off)


def _number(option: str, text: str, *, least: int, most: int) -> tuple[str, int]:
    name, separator, value = text.partition("=")
    is_number = value.isascii() and value.isdigit() and len(value) <= 9
    if not name or not separator or not is_number or not least <= int(value) <= most:
        raise OptionError(option, f"is OWNER=NUMBER from {least} to {most:,}, not {text!r:.80}")
    return name, int(value)


def _window(text: str) -> tuple[str, WindowChange | None]:
    name, separator, hours = text.rpartition("=")
    hours = hours.strip().lower()
    if not separator or not name:
        raise OptionError("window", f"{WINDOW_RULE}, not {text!r:.80}")
    if hours == ALWAYS:
        return name, None
    found = _WINDOW.fullmatch(hours)
    days = _days(found["days"]) if found else None
    if found is None or days is None or max(found["from"], found["to"]) > "24":
        raise OptionError("window", f"{WINDOW_RULE}, not {text!r:.80}")
    start, end = (_minutes(found[part]) for part in ("from", "to"))
    length = timedelta(minutes=(end - start) % 1440 or 1440)
    change = WindowChange(days, found["from"], length)
    try:
        change.entry("UTC")
    except WindowError as error:
        raise OptionError("window", f"{text!r:.80}: {error}") from error
    return name, change


def _minutes(clock: str) -> int:
    hour, minute = map(int, clock.split(":"))
    return 60 * hour + minute


def _days(text: str | None) -> tuple[str, ...] | None:
    """Return the days of `mon-fri,sun`, in the order of the week; None for a wrong one."""
    if text is None:
        return DAYS
    found: set[str] = set()
    for part in text.split(","):
        ends = [one[:2].upper() for one in part.split("-")]
        if len(ends) > 2 or not set(ends) <= set(DAYS):
            return None
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        found.update(DAYS[(first + step) % 7] for step in range((last - first) % 7 + 1))
    return tuple(day for day in DAYS if day in found)
