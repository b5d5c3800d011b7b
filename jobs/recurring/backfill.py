"""Backfill: the past due times of a range are run, as one submission that can be cancelled.

Counted before it begins, made chunk by chunk by a system worker: each chunk with its progress in
one transaction, so that a kill neither loses nor doubles a run. By the job's schedule of today,
also for times before the job was there: who asks for it wants that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from jobs.core.conf import setting
from jobs.core.errors import FairshiftError, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_naive, refuse_text
from jobs.core.sql import now
from jobs.models import AuditEntry, Backfill, HistoryPolicy, Job, Submission
from jobs.recurring.trigger import make_runs
from jobs.runs.preparation import LABEL_LIMIT
from jobs.schedules import Schedule, due_times, slot_of
from jobs.schedules.phases import SLOT
from jobs.schedules.spans import due_in, schedule_of

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

logger = logging.getLogger(__name__)

LIMIT: Final = 100_000
CHUNK: Final = 1_000
ROUND_SECONDS: Final = 20.0
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)


def count_backfill(job: Job, start: datetime, end: datetime) -> int:
    """Return how many runs a backfill from `start` until before `end` would make.

    Both are aware. Raises OptionError, naming the limit, for a range that is none, is not in the
    past, holds more than 100,000 due times or none; for a job that is off or keeps no runs; and
    ScheduleError for one whose schedule is broken.
    """
    _refuse_range(start, end)
    facts = Job.objects.values().get(pk=job.pk)
    if not facts["enabled"]:
        raise OptionError("job", f"{job} is not enabled")
    if facts["history_policy"] == HistoryPolicy.NONE:
        problem = f"{job} keeps no runs (history 'none'), so a backfill would leave no record"
        raise OptionError("job", problem)
    counted = sum(1 for _ in islice(_due(schedule_of(facts), start=start, end=end), LIMIT + 1))
    if counted > LIMIT:
        raise OptionError(
            "end",
            f"leaves more than {LIMIT:,} due times, which is the limit; choose a shorter range",
        )
    if not counted:
        raise OptionError("end", f"leaves no due time of {job} in the range")
    return counted


def backfill(
    job: Job,
    start: datetime,
    end: datetime,
    *,
    actor: AbstractBaseUser | None = None,
    reason: str = "",
) -> Backfill:
    """Have a job's due times from `start` until before `end` run again; return the backfill.

    Its runs are made by a system worker, within seconds of the commit, and are those of
    `backfill.submission`: cancel that to stop it. A pause does not hold it. Where runs of the job
    must not overlap, its lock key keeps them apart. Each call makes runs of its own. The reason may
    be empty. Raises what `count_backfill` raises, and OptionError for a reason that is too long.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        # Locked: the schedule that is counted is the one that is recorded.
        job = Job.objects.select_for_update(of=("self",), no_key=True).get(pk=job.pk)
        count = count_backfill(job, start, end)
        submission = Submission.objects.create(
            owner_id=job.owner_id,
            label=f"backfill of {job}"[:LABEL_LIMIT],
            task=job.task,
            queue=job.queue or setting("JOBS_QUEUE"),
            run_count=count,
        )
        made = Backfill.objects.create(
            job=job, start_at=start, end_at=end, count=count, next_at=start, submission=submission
        )
        details = {"start": start.isoformat(), "end": end.isoformat(), "runs": count}
        AuditEntry.write(
            "backfill", on=job, actor=actor, reason=reason, **details, submission=submission.pk
        )
    return made


def make_pending_runs(*, seconds: float = ROUND_SECONDS) -> int:
    """Make runs of all open backfills, a chunk of each in turn; return how many.

    Ends when all are made or the time is up, which the next call goes on from.
    """
    until = time.monotonic() + seconds
    total, last = 0, 0
    while time.monotonic() < until:
        made = _next_chunk(after=last)
        if made is None and last == 0:
            break
        if made is None:
            last = 0
        else:
            last, count = made
            total += count
    return total


def _next_chunk(*, after: int) -> tuple[int, int] | None:
    """Make a chunk of the first open backfill after an id; return its id and how many runs."""
    with transaction.atomic():
        rows = Backfill.objects.select_for_update(of=("self",), skip_locked=True)
        one = rows.filter(pk__gt=after, done_at=None).order_by("pk").first()
        if one is None:
            return None
        start = one.next_at or one.start_at
        try:
            schedule = schedule_of(Job.objects.values().get(pk=one.job_id))
            due = list(islice(_due(schedule, start=start, end=one.end_at), CHUNK))
        except FairshiftError:
            # A row that was written by hand since it was asked for: it ends, and stops no other.
            logger.exception("backfill %s ends: its job has no schedule to follow", one.pk)
            Backfill.objects.filter(pk=one.pk).update(done_at=Now())
            return one.pk, 0
        pairs = [(one.job_id, slot_of(at)) for at in due]
        count = make_runs(pairs, salt=f"backfill:{one.pk}", submission=one.submission_id)
        progress: dict[str, Any] = {"made": F("made") + count}
        if len(due) < CHUNK:
            progress["done_at"] = Now()
        else:
            progress["next_at"] = due[-1] + SLOT
        Backfill.objects.filter(pk=one.pk).update(**progress)
        return one.pk, count


def _refuse_range(start: datetime, end: datetime) -> None:
    refuse_naive("start", start)
    refuse_naive("end", end)
    if end <= start:
        raise OptionError("end", "must be later than start")
    if start < EARLIEST:
        raise OptionError("start", f"is not before {EARLIEST:%Y-%m-%d}")
    if end > now():
        raise OptionError("end", "lies in the future: a backfill is of the past")


def _due(schedule: Schedule, *, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield due times one by one: a cron expression is walked no further than is asked."""
    if schedule.kind == "cron":
        return due_times(schedule, start=start, end=end)
    return iter(due_in(schedule, start=start, end=end))
