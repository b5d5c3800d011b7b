"""The schedule of a job for pages: its state, in words, with its place and its next times."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.calendars.reads.occurrence_list import Occurrence, Timetable
from jobs.core.phrases import joined, short_day
from jobs.models import Job, ScheduleKind
from jobs.schedules import Schedule, ScheduleError, checked, in_words, next_times, notes
from jobs.schedules.schedule import FIELDS
from jobs.schedules.spans import schedule_of

NEXT: Final = 10
PREVIEWED: Final = 5
_COLUMNS: Final = ("schedule", *FIELDS, "phase", "shard")


class Life(StrEnum):
    """Whether the schedule of a job makes runs, or why it does not."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    PAUSED = "paused"
    BROKEN = "broken"


def life_of(job: Job, *, now: datetime) -> Life:
    """Return the state of a job's schedule."""
    if not job.enabled:
        return Life.DISABLED
    if is_broken(job):
        return Life.BROKEN
    return Life.PAUSED if is_paused(job, now=now) else Life.ENABLED


def is_paused(job: Job, *, now: datetime) -> bool:
    """Say whether a job is paused now."""
    return job.paused_until is not None and job.paused_until > now


def of_job(job: Job) -> Schedule:
    """Return the schedule in a job's columns, checked; raises ScheduleError for a broken one."""
    row = {name: getattr(job, name) for name in _COLUMNS}
    if job.schedule == ScheduleKind.INTERVAL and None in (job.phase, job.shard):
        raise ScheduleError("phase", "is missing: save the job here to get one")
    return checked(schedule_of(row))


def is_broken(job: Job) -> bool:
    """Say whether a job's stored schedule is invalid."""
    try:
        of_job(job)
    except ScheduleError:
        return True
    return False


def next_due(job: Job, *, now: datetime) -> datetime | None:
    """Return when a job is due next, or None. Raises ScheduleError for a broken schedule."""
    if not job.enabled:
        return None
    found = next_times(of_job(job), after=_from(job, now), count=1)
    return found[0] if found else None


def timetable_of_job(job: Job, *, now: datetime) -> Timetable:
    """Return a job's schedule in words and its next times, or its error."""
    try:
        found = timetable_of(of_job(job), after=_from(job, now), count=NEXT)
    except ScheduleError as error:
        return Timetable(words=job.get_schedule_display(), problem=problem_of(error))
    if not job.enabled:
        remark = _("It is not enabled: its schedule makes no runs.")
        return Timetable(words=found.words, remark=remark)
    return replace(found, not_before=job.paused_until) if is_paused(job, now=now) else found


def place_in_words(job: Job) -> str:
    """Return the minute of its interval and the second of its minute at which a job is due.

    Empty for a job that has no such place.
    """
    if job.shard is None:
        return ""
    second = f"{job.shard / 2:.1f}"
    if job.schedule == ScheduleKind.INTERVAL:
        facts = {"phase": job.phase, "of": job.interval_minutes, "second": second}
        return _("minute %(phase)s of %(of)s, second %(second)s") % facts
    return _("second %s of its minute") % second if job.smooth else ""


def timetable_of(schedule: Schedule, *, after: datetime, count: int) -> Timetable:
    """Return a checked schedule in words, with its next times in its zone and the reader's."""
    zone, reader = schedule.zone or "UTC", timezone.get_current_timezone_name()
    times = next_times(schedule, after=after, count=count)
    return Timetable(
        words=in_words(schedule),
        occurrences=[
            Occurrence(
                here=_clock(at, ZoneInfo(zone)),
                there=_clock(at, timezone.get_current_timezone()) if zone != reader else "",
                note=note,
                at=at,
            )
            for at, note in zip(times, notes(times, zone), strict=True)
        ],
        zone=zone,
        reader_zone=reader,
    )


def problem_of(error: ScheduleError) -> str:
    """Return the error of a schedule, with the field's label in the form."""
    try:
        field = str(Job._meta.get_field(error.field).verbose_name)  # type: ignore[union-attr]
    # The error of a row that raw SQL wrote may name anything.
    except Exception:
        field = error.field
    return f"{field}: {error.problem}"


def _from(job: Job, now: datetime) -> datetime:
    """Return the time after which a job can be due: now, or the end of its pause."""
    return max(now, job.paused_until) if job.paused_until is not None else now


def _clock(at: datetime, zone: Any) -> str:
    local = at.astimezone(zone)
    seconds = f":{local:%S.%f}"[:5] if at.astimezone(UTC).second or at.microsecond else ""
    return joined([short_day(local), f"{local:%Y-%m-%d %H:%M}{seconds} {local:%Z}"], " ")
