"""Import PeriodicTasks of django-celery-beat as jobs, with a report on each.

Imported entries are switched off in the same transaction; refused ones are not changed. That
transaction leads in place of the beat: every due time before it is the beat's, every later one the
job's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from fleet.beat.due import due_after
from fleet.beat.scheduler import LEASE_SECONDS
from jobs import schedules
from jobs.catalog.registry import resolve
from jobs.core import sql
from jobs.core.errors import FairshiftError
from jobs.core.sql import now
from jobs.definitions import placement
from jobs.definitions.beat_entries import is_ours, job_of
from jobs.definitions.spec import JobSpec, fault_of, job_spec
from jobs.definitions.upsert import upsert_jobs
from jobs.models import Job, Owner, ScheduleKind, SentEntry
from jobs.runs import preparation
from jobs.runs.options import own_policy
from jobs.runs.submission import run_job
from jobs.schedules.spans import schedule_of

TICK: Final = timedelta(microseconds=1)
# A beat that lost the lease reads all entries again.
_LEAD: Final = """
UPDATE jobs_leader SET holder = 'import-beat', until = clock_timestamp() + make_interval(secs => %s)
WHERE name = 'beat'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of one PeriodicTask."""

    name: str
    verdict: str
    """"imported" (in a plan "would import"), "refused" or "left out"."""
    field: str = ""
    problem: str = ""
    job: dict[str, Any] | None = None
    """The job as it was given to `upsert_jobs`."""
    attempts: int | None = None
    """Of each of its runs; with `retry_on`, the errors after which there is another, if not any."""
    retry_on: Sequence[str] = ()
    place: tuple[int, int] | None = None
    """Phase and shard of an interval in minutes: it stays due as it was."""
    at: datetime | None = None
    """The time of this report."""
    due_before: datetime | None = None
    """When celery-beat would send next. If that has passed, the job runs once as it is imported."""
    due_at: datetime | None = None
    """When the job is due next; None if it never is."""
    is_ours: bool = False
    """It belongs to Fairshift or Celery."""


def import_beat(owner: Owner | str, *, is_plan: bool = False) -> list[Imported]:
    """Make an owner's jobs of all enabled PeriodicTasks; return a report on each entry.

    An entry's name becomes the job's key; a key that the owner already has is refused. A plan
    changes nothing. It can be repeated: imported entries are switched off. Raises UnknownOwner.
    """
    from django_celery_beat.models import PeriodicTask, PeriodicTasks

    with transaction.atomic():
        owner_row = preparation.load_owner(owner)
        if not is_plan:
            sql.query(_LEAD, [LEASE_SECONDS])
        related = ("interval", "crontab", "solar", "clocked")
        entries = PeriodicTask.objects.select_for_update(of=("self",)).select_related(*related)
        known = set(Job.objects.filter(owner=owner_row).values_list("key", flat=True))
        at = now()
        sent = dict(SentEntry.objects.values_list("name", "due_at"))
        verdict = "would import" if is_plan else "imported"
        report = [
            _judged(
                entry,
                known,
                owner=owner_row.slug,
                last=max(filter(None, (entry.last_run_at, sent.get(entry.name))), default=None),
                verdict=verdict,
                now=at,
            )
            for entry in entries.order_by("name")
        ]
        chosen = {row.name: row.job for row in report if row.job is not None}
        if chosen and not is_plan:
            upsert_jobs(owner_row, chosen.values())
            placement.move_to({(owner_row.pk, row.name): row.place for row in report if row.place})
            jobs = Job.objects.filter(owner=owner_row, key__in=chosen)
            # Due times since then are the job's, also those that pass before the commit.
            jobs.update(effective_from=at)
            PeriodicTask.objects.filter(name__in=chosen).update(enabled=False, last_run_at=None)
            PeriodicTasks.update_changed()
            overdue = [row.name for row in report if row.due_before and row.due_before <= at]
            for job in jobs.filter(key__in=overdue):
                run_job(job)
    return report


def _judged(
    entry: Any,
    known: set[str],
    *,
    owner: str,
    last: datetime | None,
    verdict: str,
    now: datetime,
) -> Imported:
    ours = is_ours(entry)
    if ours or not entry.enabled:
        problem = "belongs to Fairshift or Celery" if ours else "is switched off"
        return Imported(name=entry.name, verdict="left out", problem=problem, is_ours=ours)
    if entry.name in known:
        return _refused(entry, "name", "is the key of a job of this owner already")
    try:
        job = job_of(entry, owner=owner, now=now)
    except FairshiftError as error:
        return _refused(entry, *fault_of(error))
    spec, faults = job_spec(job)
    if spec is None:
        return _refused(entry, *fault_of(faults[0]))
    last = _last(entry, last)
    place = _place_of(spec, last)
    policy = preparation.with_task_policy(resolve(entry.task), own_policy(spec.columns))
    return Imported(
        name=entry.name,
        verdict=verdict,
        job=job,
        attempts=policy["max_attempts"],
        retry_on=policy.get("retry_on", ()),
        place=place,
        at=now,
        due_before=_due_before(entry, spec, last),
        due_at=_due_at(spec, place, now),
    )


def _last(entry: Any, last: datetime | None) -> datetime:
    """Return the time from which celery-beat counts an entry's next due time."""
    start = entry.start_time
    if start is not None and (last is None or last < start):
        return start - (entry.schedule.run_every if entry.interval else TICK)
    return last or entry.date_changed


def _place_of(spec: JobSpec, last: datetime) -> tuple[int, int] | None:
    minutes = spec.columns["interval_minutes"]
    return None if minutes is None else schedules.place_at(last, interval_minutes=minutes)


def _due_before(entry: Any, spec: JobSpec, last: datetime) -> datetime | None:
    """Return when celery-beat would send an entry next; None if it is one in seconds, or never."""
    if spec.columns["schedule"] == ScheduleKind.SECONDS:
        return None
    due_at = schedules.moment_of(schedules.slot_of(due_after(entry.schedule, last)))
    return None if entry.expires is not None and due_at > entry.expires else due_at


def _due_at(spec: JobSpec, place: tuple[int, int] | None, now: datetime) -> datetime | None:
    columns = spec.columns
    phase, shard = place or (None, None)
    schedule = schedule_of({**columns, "phase": phase, "shard": shard})
    return next(iter(schedules.next_times(schedule, after=now, count=1)), None)


def _refused(entry: Any, wrong: str, problem: str) -> Imported:
    return Imported(name=entry.name, verdict="refused", field=wrong, problem=problem)
