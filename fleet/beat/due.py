"""When an entry of celery-beat is due, by its schedule and its last due time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import floor
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from celery.schedules import schedule as interval


def due_after(schedule: Any, last: datetime) -> datetime:
    """Return the first due time after `last` of any Celery schedule, in UTC.

    For a schedule with a single time: that time, or `last` when it has passed.
    """
    last = last.astimezone(UTC)
    # A schedule counts from `now`: set its clock to `last` for the nominal due time.
    clock = schedule.nowfun
    schedule.nowfun = lambda: last
    try:
        return max(last, last + schedule.remaining_estimate(last))
    finally:
        schedule.nowfun = clock


def last_due(schedule: Any, *, after: datetime, now: datetime) -> datetime:
    """Return the last due time up to `now`, in UTC; the first one after `after` if that is later.

    One send at that time stands for all missed due times before it. Cost: O(log of the span).
    """
    first = due_after(schedule, after)
    if first >= now:
        return first
    if isinstance(schedule, interval) and not schedule.relative:
        every = schedule.run_every
        return first + floor((now - first) / every) * every if every else now
    due, span = first, timedelta(seconds=1)
    while (start := now - span) > first:
        if start < (found := due_after(schedule, start)) <= now:
            due = found
            break
        span *= 2
    while due < (following := due_after(schedule, due)) <= now:
        due = following
    return due


def send_id(name: str, due_at: datetime) -> str:
    """Return the task id of an entry's send for a due time; always the same one."""
    return str(uuid5(NAMESPACE_OID, f"{name}\n{due_at.astimezone(UTC).isoformat()}"))
