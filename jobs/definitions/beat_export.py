"""Write jobs back to PeriodicTasks of django-celery-beat, with a report on each.

A job is switched off in the transaction that writes its PeriodicTask. That transaction stops the
pulse: every due time before it is the job's, every later one celery-beat's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.db import transaction

from jobs.core import sql
from jobs.core.crypto import read_body
from jobs.core.errors import FairshiftError, OptionError
from jobs.definitions.beat_entries import is_ours
from jobs.definitions.job_entries import TICK, Written, entry_of
from jobs.definitions.periodic_tasks import sync_after_commit
from jobs.definitions.spec import fault_of
from jobs.models import Cursor, HistoryPolicy, Job, ScheduleKind
from jobs.schedules import moment_of

NAME_LIMIT: Final = 200
LOOK_SECONDS: Final = 0.2
BATCH: Final = 1_000
_SCHEDULES: Final = ("interval", "crontab", "solar", "clocked")


class DueTimesAreOpen(FairshiftError):
    """Due times have passed that no worker has handled yet."""

    problem: str

    def __str__(self) -> str:
        return self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What became of one job."""

    owner: str
    key: str
    verdict: str
    """"exported" (in a plan "would export"), "refused" or "left out"."""
    name: str = ""
    """Of its PeriodicTask."""
    is_new: bool = False
    """The PeriodicTask is made; else it was there, switched off."""
    is_on: bool = False
    field: str = ""
    problem: str = ""
    loses: Sequence[str] = ()
    """Fields whose values a PeriodicTask does not have."""
    due_at: datetime | None = None
    """When it is due next."""


@dataclass(frozen=True, slots=True)
class _Change:
    job: Job
    entry: Any
    is_new: bool
    written: Written
    upto: datetime
    """Due times before it are the job's."""


def export_beat(*, is_plan: bool = False, patience: float = 30.0) -> list[Exported]:
    """Write every job with a schedule to its PeriodicTask; return a report on each job.

    A job that was imported switches its PeriodicTask on again. It can be repeated: exported jobs
    are switched off. Raises DueTimesAreOpen if due times stay open for `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        with transaction.atomic():
            upto = _handled_upto(stops_pulse=not is_plan)
            if upto is not None or is_plan:
                return _export(upto or sql.now(), is_plan=is_plan)
        if time.monotonic() > deadline:
            raise DueTimesAreOpen(
                "Due times have passed that no worker has handled: start the beat and the system's"
                " worker, then repeat."
            )
        time.sleep(LOOK_SECONDS)


def _handled_upto(*, stops_pulse: bool) -> datetime | None:
    """Return the time before which all due times are handled; None while some are open.

    With `stops_pulse`, no tick is made until the transaction ends.
    """
    if stops_pulse:
        list(Cursor.objects.select_for_update())
    [row] = sql.run("definitions/handled_slots", {})
    if row["slot"] is None:
        return sql.now()
    return None if row["is_open"] else moment_of(row["slot"])


def _export(upto: datetime, *, is_plan: bool) -> list[Exported]:
    from django_celery_beat.models import PeriodicTask

    jobs = Job.objects.select_related("owner").order_by("owner__slug", "key")
    entries = PeriodicTask.objects.select_related(*_SCHEDULES)
    if not is_plan:
        jobs, entries = (rows.select_for_update(of=("self",)) for rows in (jobs, entries))
    known = {entry.name: entry for entry in entries.order_by("name")}
    gated = {row["id"] for row in sql.run("definitions/jobs_with_calendars", {})}
    ends = {row["id"]: row for row in sql.run("definitions/handled_seconds", {})}
    verdict = "would export" if is_plan else "exported"
    report: list[Exported] = []
    changes: list[_Change] = []
    taken: set[str] = set()
    for job in jobs:
        end = ends.get(job.pk)
        its_upto = upto if end is None else end["newest"] + end["is_made"] * TICK
        row, written = _judged(
            job, known, taken, is_gated=job.pk in gated, upto=its_upto, verdict=verdict
        )
        report.append(row)
        if written is not None:
            entry = known[row.name] = _entry(job, row, written, known.get(row.name))
            taken.add(row.name)
            changes.append(_Change(job, entry, row.is_new, written, its_upto))
    if not is_plan:
        _write(changes)
    return report


def _judged(
    job: Job,
    known: Mapping[str, Any],
    taken: AbstractSet[str],
    *,
    is_gated: bool,
    upto: datetime,
    verdict: str,
) -> tuple[Exported, Written | None]:
    row = partial(Exported, owner=job.owner.slug, key=job.key)
    if job.schedule == ScheduleKind.MANUAL:
        return row(verdict="left out", problem="is run by hand only"), None
    names = [job.key, f"{job.owner.slug}: {job.key}"]
    if not job.enabled and any(name in known for name in names):
        return row(verdict="left out", problem="is switched off"), None
    free = [name for name in names if name not in taken and _is_free(known.get(name))]
    name = free[0] if free else ""
    entry = known.get(name)
    try:
        if not name or len(name) > NAME_LIMIT:
            raise OptionError("key", "is the name of a PeriodicTask that is on: rename one of them")
        if is_gated:
            raise OptionError("calendar", "has no counterpart: a PeriodicTask obeys no calendar")
        args, kwargs = read_body(job.payload, key=job.payload_key, place=job.place)
        change = entry_of(job, args, kwargs, entry=entry, upto=upto)
    except FairshiftError as error:
        field, problem = fault_of(error)
        if job.enabled:
            return row(verdict="refused", field=field, problem=problem), None
        return row(verdict="left out", problem="is switched off"), None
    if change is None:
        return row(verdict="left out", problem="is never due again"), None
    facts = {"is_on": change.fields["enabled"], "loses": change.loses, "due_at": change.due_at}
    return row(verdict=verdict, name=name, is_new=entry is None, **facts), change


def _is_free(entry: Any) -> bool:
    """Say whether a job may write this PeriodicTask: it is switched off, or not there."""
    return entry is None or not (entry.enabled or is_ours(entry))


def _entry(job: Job, row: Exported, change: Written, found: Any) -> Any:
    """Return the PeriodicTask of a job, changed or made, and not saved."""
    from django_celery_beat.models import PeriodicTask

    entry = found or PeriodicTask(name=row.name)
    for name, value in {"task": job.task, **change.fields}.items():
        setattr(entry, name, value)
    return entry


def _write(changes: Sequence[_Change]) -> None:
    from django_celery_beat.models import PeriodicTask, PeriodicTasks

    if not changes:
        return
    for change in changes:
        if change.written.schedule is not None:
            kind, columns = change.written.schedule
            for other in _SCHEDULES:
                setattr(
                    change.entry, other, _schedule_row(kind, columns) if other == kind else None
                )
    PeriodicTask.objects.bulk_create([each.entry for each in changes if each.is_new])
    names = [field.name for field in PeriodicTask._meta.concrete_fields if field.name != "id"]
    known = [each.entry for each in changes if not each.is_new]
    PeriodicTask.objects.bulk_update(known, names, batch_size=BATCH)
    _end([each.job for each in changes], [each.upto - TICK for each in changes])
    PeriodicTasks.update_changed()


def _end(jobs: Sequence[Job], at: Sequence[datetime]) -> None:
    """Let jobs have no later due time; their runs that wait stay.

    A job without history stays on, with an end: else its runs, which have no row, would be dropped.
    """
    for job, end_at in zip(jobs, at, strict=True):
        if job.history_policy == HistoryPolicy.NONE:
            job.end_at = end_at
        else:
            job.enabled = False
    Job.objects.bulk_update(jobs, ["enabled", "end_at"], batch_size=BATCH)
    sync_after_commit([job.pk for job in jobs])


def _schedule_row(kind: str, columns: Mapping[str, Any]) -> Any:
    """Return the oldest row of a schedule, or a new one: django-celery-beat allows equal ones."""
    from django_celery_beat.models import PeriodicTask

    model = PeriodicTask._meta.get_field(kind).related_model
    return model.objects.filter(**columns).order_by("id").first() or model.objects.create(**columns)
