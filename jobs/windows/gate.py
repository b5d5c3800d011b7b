"""May it be queued now, or when is it to be looked at again? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.windows.entries import CalendarHours
from jobs.windows.openings import HORIZON, cut_off_of, next_opening


@dataclass(frozen=True, slots=True)
class Gate:
    """Open now: it may start until `not_after` (None: for ever). Else it opens at `opens_at`.

    With neither there is no opening that is long enough within a year.
    """

    opens_at: datetime | None = None
    not_after: datetime | None = None
    is_open: bool = False


OPEN = Gate(is_open=True)


def gate_of(
    calendars: Sequence[CalendarHours], *, now: datetime, needed: timedelta, late: timedelta
) -> Gate:
    """Return the gate of a run whose attempt needs so long, by all calendars that apply.

    `late` is how long after the beginning of an opening that is still to come it would start, so
    that thousands do not start at once. In an opening with less room they are spread over the first
    half of that: the other half is for what stands in a queue.
    """
    if not calendars:
        return OPEN
    found = next_opening(calendars, after=now, needed=needed)
    if found is None:
        return Gate()
    last = found.end - cut_off_of(calendars) - needed
    if found.start <= now:
        # What does not end within a year has no last moment: it would be another one each time.
        return Gate(is_open=True, not_after=None if found.end - now >= HORIZON else last)
    room = (last - found.start) / 2
    if late > room:
        late = late % room if room else room
    return Gate(opens_at=found.start + late)
