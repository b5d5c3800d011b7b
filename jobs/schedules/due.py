"""The due times of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from jobs.core.errors import ScheduleError
from jobs.schedules.cron import walk
from jobs.schedules.phases import EPOCH, SLOT, SLOTS, moment_of
from jobs.schedules.schedule import Schedule

HORIZON: Final = timedelta(days=8 * 366)
"""So far ahead is looked for the next times: from one 29th of February to the next, always."""

_TICK: Final = timedelta(microseconds=1)


def due_times(schedule: Schedule, *, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the nominal due times from `start` until before `end`, in UTC, in order.

    `start_at` and `end_at` of the schedule are applied, both included. Due times in seconds are
    whole multiples of the interval since 1970. Raises ScheduleError at the first step, for a
    schedule that cannot be followed.
    """
    if schedule.start_at is not None:
        start = max(start, schedule.start_at)
    if schedule.end_at is not None:
        end = min(end, schedule.end_at + _TICK)
    if start >= end:
        return
    if schedule.kind == "interval":
        phase = schedule.phase * SLOTS + schedule.shard
        step = _whole(schedule, "interval_minutes") * SLOTS
        yield from _evenly(step, phase, start=start, end=end)
    elif schedule.kind == "seconds":
        step = _whole(schedule, "interval_seconds") * SLOTS // 60
        yield from _evenly(step, 0, start=start, end=end)
    elif schedule.kind == "cron":
        yield from walk(schedule.cron, schedule.zone, start=start, end=end)
    elif schedule.kind == "once":
        if schedule.once_at is None:
            raise ScheduleError("once_at", "is missing")
        if start <= schedule.once_at < end:
            yield schedule.once_at.astimezone(UTC)


def _evenly(step: int, phase: int, *, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the first instants of every `step`-th slot since 1970, counted from slot `phase`."""
    first, until = -((EPOCH - start) // SLOT), -((EPOCH - end) // SLOT)
    return map(moment_of, range(first + (phase - first) % step, until, step))


def _whole(schedule: Schedule, field: str) -> int:
    value: int | None = getattr(schedule, field)
    if not value or value < 1:
        raise ScheduleError(field, "is missing or below 1")
    return value


def next_times(schedule: Schedule, *, after: datetime, count: int) -> list[datetime]:
    """Return up to `count` due times later than `after`, in UTC.

    Fewer when it has no more within eight years. Raises ScheduleError.
    """
    times = due_times(schedule, start=after + _TICK, end=after + HORIZON)
    return list(islice(times, count))
