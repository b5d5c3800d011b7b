"""Import PeriodicTasks of django-celery-beat as jobs, with a report on each.

Imported entries are switched off in the same transaction; refused ones are not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from jobs.core.errors import FairshiftError
from jobs.core.sql import now
from jobs.definitions.beat_entries import is_ours, job_of
from jobs.definitions.spec import fault_of, job_spec
from jobs.definitions.upsert import upsert_jobs
from jobs.models import Job, Owner
from jobs.runs import preparation


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
    _, faults = job_spec(job)
    if faults:
        return _refused(entry, *fault_of(faults[0]))
    return Imported(name=entry.name, verdict=verdict, job=job)


def _refused(entry: Any, wrong: str, problem: str) -> Imported:
    return Imported(name=entry.name, verdict="refused", field=wrong, problem=problem)
