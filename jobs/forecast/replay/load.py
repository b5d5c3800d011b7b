"""A load that can be replayed: its calls, its owners, and what a start costs. Pure.

Times are in microseconds since `Load.since`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from jobs.windows.entries import CalendarHours

if TYPE_CHECKING:
    from jobs.models import Owner

SECOND: Final = 1_000_000


class OutOfTime(Exception):
    """A plan would take longer than it may."""


@dataclass(frozen=True, slots=True)
class Hours:
    """The calendars that apply to a call, and how long a window must be open for it."""

    calendars: tuple[CalendarHours, ...]
    needed: timedelta
    delay: timedelta = timedelta(0)
    """Its delay in a future opening, by a spread of starts."""


@dataclass(slots=True)
class Call:
    """An attempt of a run. It may start from `at` on, in its hours, until before `start_by`."""

    owner: str
    task: str
    at: int
    run: int
    """How long it took."""
    submission: str = ""
    priority: int = 5
    lock: str = ""
    start_by: int | None = None
    hours: Hours | None = None
    then: Call | None = None
    """The next attempt of the run; its `at` counts from the end of this one."""
    wave: int = 0
    """The wave of its submission (`Load.gaps`). A held one has `at` and `start_by` from 0, its
    release, on."""
    is_counted: bool = True
    """False: it was queued before the span, and only takes slots in it."""


@dataclass(frozen=True, slots=True)
class OwnerSetting:
    """Weight, cap and starts a second (0: any number) of an owner."""

    weight: float = 1
    cap: int = 0
    rate: float = 0


def setting_of(owner: Owner) -> OwnerSetting:
    """Return the settings of an owner as the fair queue gets them."""
    rate = owner.rate_limit_per_minute
    return OwnerSetting(owner.weight, owner.max_running or 0, rate / 60 if rate else 0)


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a start costs, measured in the recording, in microseconds.

    `start` is how long a slot is idle before a run that could have it; `end` is how long after the
    end of a run its owner's cap, and the queue, count it as running.
    """

    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls in the order of their times, and what they were recorded with."""

    since: datetime
    until: datetime
    calls: Sequence[Call]
    owners: Mapping[str, OwnerSetting]
    slots: int
    overhead: Overhead = field(default_factory=Overhead)
    gaps: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By submission and wave: the time from the end of the waves before it to its release."""
    each: int = 1
    """How many runs of the recording a call stands for. Its times in a slot are as much longer, so
    that the load of the slots is the same."""
