"""Due times in a span, as a sequence that is counted and cut without being listed. Pure.

A job of every minute has half a million due times in a year. To catch up with the newest hundred,
only these and the number of the others are needed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, overload

from jobs.core.errors import ScheduleError
from jobs.schedules.cron import cron_minutes
from jobs.schedules.phases import EPOCH, MINUTE
from jobs.schedules.schedule import FIELDS, Schedule

SMOOTHED: Final = ("cron", "once")
NONE: Final = timedelta()
KEPT_CRONS: Final = 1_000
"""Cron expressions whose due times in a span are cached, for all their jobs."""


class Times(Sequence[datetime]):
    """Times as numbers of steps since 1970, plus an offset."""

    def __init__(self, numbers: Sequence[int], *, step: timedelta, offset: timedelta) -> None:
        self.numbers, self.step, self.offset = numbers, step, offset

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> datetime: ...
    @overload
    def __getitem__(self, index: slice) -> Times: ...
    def __getitem__(self, index: int | slice) -> datetime | Times:
        if isinstance(index, slice):
            return Times(self.numbers[index], step=self.step, offset=self.offset)
        return EPOCH + self.offset + self.numbers[index] * self.step


def schedule_of(row: Mapping[str, Any]) -> Schedule:
    """Return the schedule in a job's columns (`jobs/recurring/sql/lock_catch_up_jobs.sql`).

    Raises ScheduleError for a job without phase or shard, and for a time that is no whole minute:
    ticks do not find them either.
    """
    kind, once_at = row["schedule"], row["once_at"]
    if (kind == "interval" or (row["smooth"] and kind in SMOOTHED)) and row["shard"] is None:
        raise ScheduleError("shard", "is missing")
    if kind == "interval" and row["phase"] is None:
        raise ScheduleError("phase", "is missing")
    if kind == "once" and once_at is not None and (once_at - EPOCH) % MINUTE:
        raise ScheduleError("once_at", "is no whole minute")
    return Schedule(
        kind=kind,
        phase=row["phase"] or 0,
        shard=row["shard"] or 0,
        **{name: row[name] for name in FIELDS},
    )


def delay_of(schedule: Schedule) -> timedelta:
    """Return how long after its due time a job is triggered; a smooth job is, at its shard."""
    is_late = schedule.smooth and schedule.kind in SMOOTHED
    return timedelta(seconds=schedule.shard / 2) if is_late else NONE


def due_in(
    schedule: Schedule, *, start: datetime, end: datetime, since: datetime | None = None
) -> Sequence[datetime]:
    """Return the nominal due times d of a schedule with start <= d < end, in UTC, in order.

    The schedule's `start_at` and `end_at` (both included) and `since` are applied. For many jobs
    give the same start and end, and each job its own `since`: a cron expression is then walked once
    for all of them. Due times in seconds are whole multiples of the interval since 1970. A manual
    job has none. Raises ScheduleError for a broken schedule.
    """
    found: Sequence[datetime]
    low = max(start, since or start, schedule.start_at or start)
    if low >= end:
        return ()
    match schedule.kind:
        case "interval":
            step = timedelta(minutes=_interval(schedule, "interval_minutes"))
            offset = timedelta(minutes=schedule.phase, seconds=schedule.shard / 2)
            found = _evenly(step, offset, start=low, end=end)
        case "seconds":
            step = timedelta(seconds=_interval(schedule, "interval_seconds"))
            found = _evenly(step, NONE, start=low, end=end)
        case "cron":
            found = _cron_minutes(schedule.cron, schedule.zone, start, end)
        case "once":
            if schedule.once_at is None:
                raise ScheduleError("once_at", "is missing")
            found = (schedule.once_at.astimezone(UTC),)
        case _:
            return ()
    found = found[bisect_left(found, low) : bisect_left(found, end)]
    return found if schedule.end_at is None else found[: bisect_right(found, schedule.end_at)]


def without(
    due: Sequence[datetime], spans: Sequence[tuple[datetime, datetime]]
) -> list[Sequence[datetime]]:
    """Return the due times outside of closed spans, as rows between these spans."""
    rows: list[Sequence[datetime]] = []
    for first, last in sorted(spans):
        rows.append(due[: bisect_left(due, first)])
        due = due[bisect_right(due, last) :]
    return [row for row in (*rows, due) if row]


def _interval(schedule: Schedule, field: str) -> int:
    value: int | None = getattr(schedule, field)
    if not value or value < 1:
        raise ScheduleError(field, "is missing or below 1")
    return value


def _evenly(step: timedelta, offset: timedelta, *, start: datetime, end: datetime) -> Times:
    # -(-a // b) rounds up: the first number whose time is not before `start`.
    first = -((EPOCH + offset - start) // step)
    after = -((EPOCH + offset - end) // step)
    return Times(range(first, max(first, after)), step=step, offset=offset)


@lru_cache(maxsize=KEPT_CRONS)
def _cron_minutes(cron: str, zone: str, start: datetime, end: datetime) -> Times:
    minutes = cron_minutes(cron, zone, start=start, end=end)
    # Numbers take eight bytes for a time: there may be many expressions and a long span.
    return Times(array("q", [(at - EPOCH) // MINUTE for at in minutes]), step=MINUTE, offset=NONE)
