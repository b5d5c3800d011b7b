"""Whether a run may be queued now, and if not, when it is gated again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.windows.entries import CalendarHours
from jobs.windows.openings import HORIZON, cut_off_of, next_opening


@dataclass(frozen=True, slots=True)
class Gate:
    """Open now: the run may start until `not_after` (None: no limit). Else it opens at `opens_at`.

    Without either, no opening within a year is long enough.
    """

    opens_at: datetime | None = None
    not_after: datetime | None = None
    is_open: bool = False


OPEN = Gate(is_open=True)


def gate_of(
    calendars: Sequence[CalendarHours], *, now: datetime, needed: timedelta, delay: timedelta
) -> Gate:
    """Return the gate of a run whose attempt takes `needed`, by all calendars that apply.

    `delay` is added to the begin of a future opening, so that thousands of runs do not start at
    once. In a short opening they are spread over the first half of the possible starts; the other
    half is left for the time in the queue.
    """
    if not calendars:
        return OPEN
    found = next_opening(calendars, after=now, needed=needed)
    if found is None:
        return Gate()
    last = found.end - cut_off_of(calendars) - needed
    if found.start <= now:
        # An opening without an end within a year has no limit: it would move with `now`.
        return Gate(is_open=True, not_after=None if found.end - now >= HORIZON else last)
    room = (last - found.start) / 2
    if delay > room:
        delay = delay % room if room else room
    return Gate(opens_at=found.start + delay)
