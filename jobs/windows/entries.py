"""Spans of time, and the windows and freezes of a calendar as they are asked for."""

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
        """Return how long it lasts: elapsed time, whatever clocks do in it."""
        return self.end - self.start

    def clip(self, *, start: datetime | None = None, end: datetime | None = None) -> Span:
        """Return what of it is not before `start` and not after `end`; of length 0 if nothing."""
        first = self.start if start is None else max(self.start, start)
        last = self.end if end is None else min(self.end, end)
        return Span(first, max(first, last))


class Effect(StrEnum):
    """What an entry does with its spans; a freeze wins over any window."""

    WINDOW = "window"
    FREEZE = "freeze"


@dataclass(frozen=True, slots=True)
class Entry:
    """One window or freeze of a calendar, once or again and again; see `checked` for limits.

    `starts` is what the clock of `zone` shows at the first occurrence, `duration` is by that
    clock too. `rule` is an RRULE of RFC 5545 without its name, '' for a one-off; `excluded` and
    `added` are its EXDATEs and RDATEs, by the same clock. Occurrences are clipped to what is
    valid. With `approved` only those count that start inside one of its spans, with
    `approved_starts` only those that start at one of these moments.
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

    One without any window is open but for its freezes. So a window that nobody has approved
    belongs in it, with `approved=()`: leaving it out would open the calendar.
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
        # Hashes of text differ from process to process: made again, not carried over.
        return type(self), tuple(getattr(self, one.name) for one in fields(self) if one.init)
