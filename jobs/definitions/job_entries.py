"""Jobs as PeriodicTasks of django-celery-beat: the way back of `beat_entries`. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from jobs import schedules
from jobs.catalog.registry import requires_row
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError, OptionError
from jobs.definitions.beat_entries import LAST, attempts_of, job_of, routed
from jobs.definitions.beat_schedules import crontab_of
from jobs.definitions.spec import job_spec
from jobs.models import Job, MisfirePolicy, OverlapPolicy, ScheduleKind
from jobs.schedules.spans import delay_of, schedule_of

TICK: Final = timedelta(microseconds=1)
_WHEN: Final = ("interval_minutes", "interval_seconds", "cron", "zone", "once_at")
_PLAIN: Final = {
    "overlap": OverlapPolicy.ALLOW,
    "lock_key": "",
    "misfire": MisfirePolicy.ONCE,
    "smooth": False,
    "target_id": None,
    "labels": {},
    "backoff_seconds": None,
    "backoff_cap_seconds": None,
    "soft_time_limit_seconds": None,
    "time_limit_seconds": None,
    "paused_until": None,
}
"""Columns of a job that a PeriodicTask lacks, with the value that says nothing more than it."""
_TRIES: Final[Mapping[str, Any]] = {"max_attempts": None, "retry_on": [], "give_up_on": []}

# celery-beat switches an entry that has run already off.
_ONCE: Final = {"one_off": True, "total_run_count": 0}


@dataclass(frozen=True, slots=True)
class Written:
    """What a job writes into a PeriodicTask."""

    fields: Mapping[str, Any]
    """Columns, but for the schedule."""
    schedule: tuple[str, Mapping[str, Any]] | None
    """interval, crontab or clocked, with the columns of its row; None: the entry's own is right."""
    due_at: datetime
    """When it is due next."""
    loses: Sequence[str]
    """Fields of the job that a PeriodicTask has no counterpart for."""


def entry_of(
    job: Job, args: Sequence[Any], kwargs: Mapping[str, Any], *, entry: Any, upto: datetime
) -> Written | None:
    """Return what a job writes into its PeriodicTask; None if it is never due from `upto` on.

    Due times before `upto` are the job's. `entry` is the PeriodicTask that it was imported from,
    whose columns stay where they mean the same, or None. Raises OptionError and ScheduleError, by
    the job's field, for what a PeriodicTask cannot do.
    """
    if job.task.startswith("fairshift."):
        raise OptionError("task", "is one of Fairshift's")
    if requires_row(job.task):
        problem = "is made with @job: use @shared_task, or plain=True until Fairshift is removed"
        raise OptionError("task", problem)
    schedule = schedule_of({**vars(job), "schedule": job.schedule})
    after = upto - delay_of(schedule) - TICK
    # Due times are searched for a few years only.
    begin = max(after, (job.once_at or job.start_at or after) - TICK)
    due_at = next(iter(schedules.next_times(schedule, after=begin, count=1)), None)
    if due_at is None:
        return None
    was = _imported(entry, job, now=upto)
    is_on = job.enabled and (job.paused_until is None or job.paused_until <= upto)
    bounds = {"one_off": False, "start_time": job.start_at, "expires": job.end_at}
    fields = {
        "enabled": is_on,
        "last_run_at": _last_run(job, due_at, after) if is_on else None,
        **(_ONCE if job.schedule == ScheduleKind.ONCE else bounds),
        **_own(job, args, kwargs, was=was),
    }
    is_same = was is not None and all(was[name] == getattr(job, name) for name in _WHEN)
    return Written(fields, None if is_same else _schedule(job), due_at, tuple(_lost(job, upto)))


def _imported(entry: Any, job: Job, *, now: datetime) -> Mapping[str, Any] | None:
    """Return the columns of the job that this entry would become today, with its `arguments`."""
    if entry is None:
        return None
    try:
        given = job_of(entry, owner=job.owner.slug, now=now)
    except FairshiftError:
        return None
    spec, _faults = job_spec(given)
    return None if spec is None else {**spec.columns, "body": json.loads(spec.payload)[:2]}


def _own(
    job: Job, args: Sequence[Any], kwargs: Mapping[str, Any], *, was: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the columns of the call that differ from those that the entry has."""
    found: dict[str, Any] = {}
    if was is None or was["body"] != [list(args), dict(kwargs)]:
        found |= {"args": json.dumps(list(args)), "kwargs": json.dumps(dict(kwargs))}
    if was is None or was["queue"] != job.queue:
        stays = job.queue in {"", setting("JOBS_QUEUE"), routed(job.task)}
        found |= {"queue": None if stays else job.queue}
    if was is None or was["priority"] != job.priority:
        found |= {"priority": None if job.priority is None else LAST - job.priority}
    if was is None or was["deadline_seconds"] != job.deadline_seconds:
        seconds = job.deadline_seconds
        found |= {"expire_seconds": None if seconds is None else math.ceil(seconds)}
    return found


def _last_run(job: Job, due_at: datetime, after: datetime) -> datetime | None:
    """Return the last run after which celery-beat sends the due time `due_at` first."""
    match job.schedule:
        case ScheduleKind.INTERVAL:
            return due_at - timedelta(minutes=job.interval_minutes or 0)
        case ScheduleKind.SECONDS:
            return due_at - timedelta(seconds=job.interval_seconds or 0)
        case ScheduleKind.CRON:
            return after
    return None


def _schedule(job: Job) -> tuple[str, Mapping[str, Any]]:
    match job.schedule:
        case ScheduleKind.INTERVAL:
            return "interval", {"every": job.interval_minutes, "period": "minutes"}
        case ScheduleKind.SECONDS:
            return "interval", {"every": job.interval_seconds, "period": "seconds"}
        case ScheduleKind.CRON:
            return "crontab", crontab_of(job.cron, job.zone)
    return "clocked", {"clocked_time": job.once_at}


def _lost(job: Job, upto: datetime) -> list[str]:
    """Return the names of fields whose values a PeriodicTask does not have."""
    tries = {**_TRIES, **attempts_of(job.task)}
    lost = [name for name, plain in _PLAIN.items() if getattr(job, name) != plain]
    lost += [name for name, value in tries.items() if getattr(job, name) != value]
    if job.paused_until is not None and job.paused_until <= upto:
        lost.remove("paused_until")
    return lost + (["encryption"] if job.payload_key else [])
