"""The due times of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from jobs.schedules.cron import walk
from jobs.schedules.schedule import Schedule
from jobs.schedules.spans import due_in

HORIZON: Final = timedelta(days=8 * 366)
"""How far ahead the next times are searched: at least from one 29th of February to the next."""

_TICK: Final = timedelta(microseconds=1)


def due_times(schedule: Schedule, *, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield what `due_in` returns, on demand for cron; raises ScheduleError at the first step."""
    if schedule.kind == "cron":
        start = max(start, schedule.start_at or start)
        end = min(end, schedule.end_at + _TICK) if schedule.end_at else end
        yield from walk(schedule.cron, schedule.zone, start=start, end=end)
    else:
        yield from due_in(schedule, start=start, end=end)


def next_times(schedule: Schedule, *, after: datetime, count: int) -> list[datetime]:
    """Return up to `count` due times after `after`, within eight years; raises ScheduleError."""
    times = due_times(schedule, start=after + _TICK, end=after + HORIZON)
    return list(islice(times, count))
