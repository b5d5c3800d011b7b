"""Spans of time, and the windows and freezes of a calendar."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """From `start` until before `end`; both aware, in UTC."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        """Return the elapsed time; changes of clocks do not matter."""
        return self.end - self.start

    def clip(self, *, start: datetime | None = None, end: datetime | None = None) -> Span:
        """Return the part between `start` and `end`; an empty span if there is none."""
        first = self.start if start is None else max(self.start, start)
        last = self.end if end is None else min(self.end, end)
        return Span(first, max(first, last))


class Effect(StrEnum):
    """The effect of an entry in its spans; a freeze wins over any window."""

    WINDOW = "window"
    FREEZE = "freeze"


@dataclass(frozen=True, slots=True)
class Entry:
    """One window or freeze of a calendar, single or recurring; see `checked` for limits.

    `starts` is the first occurrence's start, on the clock of `zone`; `duration` is by that clock
    too. `rule` is an RRULE of RFC 5545 without its name, '' for a one-off; `excluded` and `added`
    are its EXDATEs and RDATEs, by the same clock. Occurrences are clipped to the validity. With
    `approved`, only occurrences that start inside one of its spans count; with `approved_starts`,
    only those that start at one of its moments.
    """

    effect: Effect
    starts: datetime
    duration: timedelta
    zone: str
    rule: str = ""
    excluded: tuple[datetime, ...] = ()
    added: tuple[datetime, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    approved: tuple[Span, ...] | None = None
    approved_starts: frozenset[datetime] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CalendarHours:
    """Windows and freezes together; nothing starts in the last `cut_off` of an opening.

    A calendar without windows is open, except in its freezes. So it must contain unapproved windows
    too, with `approved=()`: without them it would be open.
    """

    entries: tuple[Entry, ...]
    cut_off: timedelta = timedelta(0)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Calendars are looked up thousands of times a second, and may have hundreds of entries.
        object.__setattr__(self, "_hash", hash((self.entries, self.cut_off)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of text differ between processes: a copy computes its own.
        return type(self), tuple(getattr(self, one.name) for one in fields(self) if one.init)
