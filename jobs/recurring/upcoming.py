"""The next due times of a job, with notes on changes of the clock, and why there may be none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.core.errors import ScheduleError
from jobs.models import Job
from jobs.recurring.timetable import of_job
from jobs.schedules import in_words, next_times, notes


@dataclass(frozen=True, slots=True)
class Upcoming:
    """What a job's schedule means: in words, and as times in UTC, each with a note or ''."""

    words: str
    zone: str
    times: tuple[datetime, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why there is no time: the job is off, or its stored schedule is broken; else empty."""


def upcoming(job: Job, *, now: datetime, count: int) -> Upcoming:
    """Return at most `count` next due times of a job; none are in a pause."""
    zone = job.zone or "UTC"
    try:
        schedule = of_job(job)
        words = in_words(schedule)
        if not job.enabled:
            return Upcoming(words, zone, problem="The job is not enabled.")
        after = max(now, job.paused_until or now)
        times = next_times(schedule, after=after, count=count)
        return Upcoming(words, zone, tuple(times), tuple(notes(times, zone)))
    except ScheduleError as error:
        return Upcoming("", zone, problem=str(error))
