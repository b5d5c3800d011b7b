"""Backfill: run the past due times of a range, as one submission that can be cancelled.

The runs are counted first. A system worker makes them chunk by chunk, each chunk and its progress
in one transaction: a kill neither loses nor doubles a run. The job's present schedule decides, also
for times before the job existed.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from jobs.core import log_events
from jobs.core.apart import ROW_ERRORS
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_naive, refuse_text
from jobs.core.sql import now
from jobs.models import AuditEntry, Backfill, HistoryPolicy, Job, ScheduleKind, Submission
from jobs.models.verbs import Actor
from jobs.recurring.trigger import make_runs
from jobs.runs import idempotency
from jobs.runs.preparation import LABEL_LIMIT
from jobs.schedules import due_times, slot_of
from jobs.schedules.phases import SLOT
from jobs.schedules.spans import schedule_of

logger = logging.getLogger(__name__)

LIMIT: Final = 100_000
CHUNK: Final = 1_000
ROUND_SECONDS: Final = 20.0
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)


def that_can_be_backfilled(jobs: QuerySet[Any]) -> QuerySet[Any]:
    """Narrow jobs to those that have a schedule, are on, and keep their runs."""
    with_history = jobs.filter(enabled=True, history_policy=HistoryPolicy.FULL)
    return with_history.exclude(schedule=ScheduleKind.MANUAL)


def count_backfill(job: Job, start: datetime, end: datetime) -> int:
    """Return how many runs a backfill from `start` until before `end` would make.

    Both are aware. Raises OptionError for a range that is empty, in the future, or without a due
    time, for more than 100,000 due times, and for a job that is off or keeps no runs; ScheduleError
    for a broken schedule.
    """
    _refuse_range(start, end)
    facts = Job.objects.values().get(pk=job.pk)
    if not facts["enabled"]:
        raise OptionError("job", f"{job} is not enabled")
    if facts["history_policy"] == HistoryPolicy.NONE:
        problem = f"{job} keeps no runs (history 'none'), so a backfill would leave no record"
        raise OptionError("job", problem)
    due = due_times(schedule_of(facts), start=start, end=end)
    counted = sum(1 for _ in islice(due, LIMIT + 1))
    if counted > LIMIT:
        problem = f"leaves over {LIMIT:,} due times, which is the limit; choose a shorter range"
        raise OptionError("end", problem)
    if not counted:
        raise OptionError("end", f"leaves no due time of {job} in the range")
    return counted


def backfill(
    job: Job,
    start: datetime,
    end: datetime,
    *,
    actor: Actor = None,
    reason: str = "",
) -> Backfill:
    """Run a job's due times from `start` until before `end` once more; return the backfill.

    A system worker makes the runs within seconds of the commit, in `backfill.submission`: cancel
    that to stop them. A pause does not stop them. The job's lock key keeps runs apart that must not
    overlap. Each call makes new runs. Raises as `count_backfill` does.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        # Locked, so that the schedule does not change after its due times were counted.
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


@transaction.atomic
def backfill_once(
    job: Job,
    start: datetime,
    end: datetime,
    *,
    idempotency_key: str | None,
    actor: Actor = None,
    reason: str = "",
) -> tuple[Backfill, bool]:
    """Begin a backfill of a job; return it, and whether it is new.

    A key that has begun this backfill before returns that one. Raises IdempotencyConflict for a key
    that was used for something else; else as `backfill` does.
    """
    asked = [moment.astimezone(UTC).isoformat().encode() for moment in (start, end)]
    claim = idempotency.claim(job.owner, idempotency_key, f"job {job.pk}", asked, is_bulk=True)
    if claim.submission_id is not None:
        return Backfill.objects.get(submission=claim.submission_id), False
    made = backfill(job, start, end, actor=actor, reason=reason)
    claim.store(submission_id=made.submission_id)
    return made, True


def make_pending_runs(*, seconds: float = ROUND_SECONDS) -> int:
    """Make runs of open backfills, a chunk of each in turn, for some time; return how many."""
    until = time.monotonic() + seconds
    total = last = 0
    while time.monotonic() < until:
        made = _next_chunk(after=last)
        if made is None and not last:
            break
        last, count = made or (0, 0)
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
            due = list(islice(due_times(schedule, start=start, end=one.end_at), CHUNK))
            pairs = [(one.job_id, slot_of(at)) for at in due]
            with transaction.atomic():
                count = make_runs(pairs, salt=f"backfill:{one.pk}", submission=one.submission_id)
        except (FairshiftError, *ROW_ERRORS):
            # Raw SQL broke the job after the request. This backfill ends; the others continue.
            log_events.BACKFILL_BROKEN.log(logger, backfill=one.pk, exc_info=True)
            Backfill.objects.filter(pk=one.pk).update(done_at=Now())
            return one.pk, 0
        is_done = len(due) < CHUNK
        progress: dict[str, Any] = {"done_at": Now()} if is_done else {"next_at": due[-1] + SLOT}
        Backfill.objects.filter(pk=one.pk).update(made=F("made") + count, **progress)
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
