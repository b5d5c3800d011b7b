"""Import PeriodicTasks of django-celery-beat as jobs, with a report on each.

Imported entries are switched off in the same transaction; refused ones are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from jobs import schedules
from jobs.catalog.registry import resolve
from jobs.core.errors import FairshiftError
from jobs.core.sql import now
from jobs.definitions import placement
from jobs.definitions.beat_entries import is_ours, job_of
from jobs.definitions.spec import JobSpec, fault_of, job_spec
from jobs.definitions.upsert import upsert_jobs
from jobs.models import Job, Owner, ScheduleKind
from jobs.runs import preparation
from jobs.runs.options import own_policy
from jobs.schedules.spans import schedule_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of one PeriodicTask."""

    name: str
    verdict: str
    """"imported" (in a dry run "would import"), "refused" or "left out"."""
    field: str = ""
    problem: str = ""
    job: dict[str, Any] | None = None
    """The job as it was given to `upsert_jobs`."""
    attempts: int | None = None
    """Of each of its runs; with `retry_on`, the errors after which there is another, if not any."""
    retry_on: Sequence[str] = ()
    place: tuple[int, int] | None = None
    """Phase and shard of an entry that has run: it stays due as it was."""
    due_at: datetime | None = None
    """When the job is due next; None if it never is, or gets a place only when it is stored."""
    is_ours: bool = False
    """It belongs to Fairshift or Celery."""


def import_beat(owner: Owner | str, *, is_dry_run: bool = False) -> list[Imported]:
    """Make an owner's jobs of all enabled PeriodicTasks; return a report on each entry.

    An entry's name becomes the job's key; a key that the owner already has is refused. A dry run
    changes nothing. It can be repeated: imported entries are switched off. Raises UnknownOwner.
    """
    from django_celery_beat.models import PeriodicTask, PeriodicTasks

    with transaction.atomic():
        owner_row = preparation.load_owner(owner)
        related = ("interval", "crontab", "solar", "clocked")
        entries = PeriodicTask.objects.select_for_update(of=("self",)).select_related(*related)
        known = set(Job.objects.filter(owner=owner_row).values_list("key", flat=True))
        at = now()
        verdict = "would import" if is_dry_run else "imported"
        report = [
            _judged(entry, known, owner=owner_row.slug, verdict=verdict, now=at)
            for entry in entries.order_by("name")
        ]
        chosen = {row.name: row.job for row in report if row.job is not None}
        if chosen and not is_dry_run:
            upsert_jobs(owner_row, chosen.values())
            placement.move_to({(owner_row.pk, row.name): row.place for row in report if row.place})
            PeriodicTask.objects.filter(name__in=chosen).update(enabled=False, last_run_at=None)
            PeriodicTasks.update_changed()
    return report


def _judged(entry: Any, known: set[str], *, owner: str, verdict: str, now: datetime) -> Imported:
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
    place = _place_of(entry, spec)
    policy = preparation.with_task_policy(resolve(entry.task), own_policy(spec.columns))
    return Imported(
        name=entry.name,
        verdict=verdict,
        job=job,
        attempts=policy["max_attempts"],
        retry_on=policy.get("retry_on", ()),
        place=place,
        due_at=_due_at(spec, place, now),
    )


def _place_of(entry: Any, spec: JobSpec) -> tuple[int, int] | None:
    minutes = spec.columns["interval_minutes"]
    if minutes is None or entry.last_run_at is None:
        return None
    return schedules.place_at(entry.last_run_at, interval_minutes=minutes)


def _due_at(spec: JobSpec, place: tuple[int, int] | None, now: datetime) -> datetime | None:
    columns = spec.columns
    if columns["schedule"] == ScheduleKind.INTERVAL and place is None:
        return None
    phase, shard = place or (None, None)
    schedule = schedule_of({**columns, "phase": phase, "shard": shard})
    return next(iter(schedules.next_times(schedule, after=now, count=1)), None)


def _refused(entry: Any, wrong: str, problem: str) -> Imported:
    return Imported(name=entry.name, verdict="refused", field=wrong, problem=problem)
