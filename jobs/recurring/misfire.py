"""Misfires: due times that no tick triggered in time are run late, or recorded as missed.

Every due time is either run or inside exactly one record. A pause is recorded as one span.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from jobs.core import log_events, sql
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError
from jobs.core.sql import now
from jobs.models import Tick
from jobs.models.recurring import MissReason
from jobs.recurring.missed import JobMissed, missed_spans_of, record_missed
from jobs.recurring.overlap import Pair, apply_overlap
from jobs.recurring.pulse import defer_locked
from jobs.recurring.trigger import make_runs_apart, send_hints
from jobs.schedules import moment_of, slot_of
from jobs.schedules.misfire import MisfireRule, MissedSpan, decide, missed_span, split_pause
from jobs.schedules.phases import MINUTE
from jobs.schedules.spans import delay_of, due_in, schedule_of, without

logger = logging.getLogger(__name__)

CHUNK: Final = 5_000
"""Jobs that are judged in one transaction."""
IN_TIME: Final = MisfireRule(policy="all", cap=CHUNK)
"""The rule within the grace: all are run."""
SPOILT: Final = (FairshiftError, ValueError, TypeError, ArithmeticError)
"""What the schedule of a job that raw SQL has changed may raise."""
RUNS: Final = 20_000
"""About how many runs one chunk makes; the other jobs wait for the next chunk."""


def catch_up(tick: Tick) -> int:
    """Judge the due times in a tick of kind `catch_up` by each job's policy; return the runs made.

    The jobs are judged by id, and each chunk is committed: after a kill the next worker continues.
    If another worker has the tick, this returns. Raises BrokerUnavailable while hints of jobs
    without history cannot be published: their chunk is then judged again.
    """
    total = 0
    while (count := _catch_up_chunk(tick.pk)) is not None:
        total += count
    return total


def _catch_up_chunk(tick_id: int) -> int | None:
    """Judge the next jobs of a tick; return how many runs that made, None when none are left."""
    with transaction.atomic():
        if (tick := _locked(tick_id)) is None:
            return None
        start, end = moment_of(tick.first_slot), moment_of(tick.end_slot)
        jobs = sql.run(
            "recurring/lock_catch_up_jobs",
            {"after_id": tick.after_job, "only": None, "end": end, "most": CHUNK},
        )
        if not jobs:
            Tick.objects.filter(pk=tick_id).update(done_at=Now())
            return None
        judged = _judge(jobs, start=start, end=end)
        defer_locked((job_id, tick.first_slot, tick.end_slot) for job_id in judged.locked)
        total = _apply(judged)
        # `sent_at` too: the pulse does not send a tick again that makes progress.
        Tick.objects.filter(pk=tick_id).update(after_job=judged.after_job, sent_at=Now())
        return total


def judge_locked(tick_id: int) -> int:
    """Judge the due times of a job whose row was locked; return the runs made, 0 while it still is.

    Within the grace all of them are run; after it the job's misfire policy decides.
    """
    with transaction.atomic():
        if (tick := _locked(tick_id)) is None:
            return 0
        start, end = moment_of(tick.first_slot), moment_of(tick.end_slot)
        given = {"after_id": 0, "only": tick.after_job + 1, "end": end, "most": 1}
        jobs = sql.run("recurring/lock_catch_up_jobs", given)
        if jobs and jobs[0]["is_locked"]:
            return 0
        is_late = start < now() - timedelta(seconds=setting("MISFIRE_GRACE_SECONDS"))
        total = _apply(_judge(jobs, start=start, end=end, rule=None if is_late else IN_TIME))
        Tick.objects.filter(pk=tick_id).update(done_at=Now())
        return total


def _locked(tick_id: int) -> Tick | None:
    """Lock a tick that is not done; None when another worker is at it."""
    sql.bound_waits()
    ticks = Tick.objects.select_for_update(skip_locked=True)
    return ticks.filter(pk=tick_id, done_at=None).first()


@dataclass(slots=True)
class _Judged:
    pairs: list[Pair] = field(default_factory=list)
    missed: list[JobMissed] = field(default_factory=list)
    locked: list[int] = field(default_factory=list)
    after_job: int = 0


def _apply(judged: _Judged) -> int:
    """Make the runs and the records of jobs that are locked; return how many runs."""
    record_missed(judged.missed)
    return make_runs_apart(apply_overlap(judged.pairs).chosen) + send_hints(judged.pairs)


def _judge(
    jobs: Sequence[Mapping[str, Any]],
    *,
    start: datetime,
    end: datetime,
    rule: MisfireRule | None = None,
) -> _Judged:
    known = missed_spans_of([job["id"] for job in jobs], start=start, end=end)
    at = now()
    judged = _Judged()
    for job in jobs:
        judged.after_job = job["id"]
        if job["is_locked"]:
            judged.locked.append(job["id"])
            continue
        spans = known.get(job["id"], [])
        try:
            runs, missed = _of_job(job, spans, start=start, end=end, at=at, rule=rule)
        except SPOILT:
            # Raw SQL may have broken this job; the others are judged.
            log_events.JOB_NOT_CAUGHT_UP.log(logger, job=job["id"], exc_info=True)
            runs, missed = [], []
        judged.pairs.extend((job["id"], slot_of(due)) for due in runs)
        judged.missed.extend((job["id"], each) for each in missed)
        if len(judged.pairs) >= RUNS:
            break
    return judged


def _of_job(
    job: Mapping[str, Any],
    known: Sequence[tuple[datetime, datetime]],
    *,
    start: datetime,
    end: datetime,
    at: datetime,
    rule: MisfireRule | None,
) -> tuple[list[datetime], list[MissedSpan]]:
    schedule = schedule_of(job)
    delay = delay_of(schedule)
    # A tick has the slots in which jobs are triggered. A job that smooths its starts was due up to
    # a minute before its slot.
    since = max(job["effective_from"], start - delay)
    due = due_in(schedule, start=start - MINUTE, end=end, since=since)
    due = due[: bisect_left(due, end - delay)]
    rows: list[Sequence[datetime]] = without(due, known)
    paused: list[MissedSpan] = []
    if job["paused_until"] is not None:
        rows, paused = split_pause(
            rows, paused_from=job["paused_from"], paused_until=job["paused_until"]
        )
    deadline = job["misfire_deadline_seconds"]
    own = MisfireRule(policy=job["misfire"], cap=job["misfire_cap"], deadline_seconds=deadline)
    runs, missed = decide(rows, rule or own, now=at)
    return runs, [*paused, *missed]


def record_pauses(job_ids: Sequence[int] | None = None) -> int:
    """Record the due times in pauses that are over, of these jobs or of all; count these pauses.

    Verbs that pause or resume a job call it in their transaction, so that one pause ends before the
    next begins; the sweep calls it for pauses whose time is up. When the schedule changes during a
    pause, the pause begins anew: due times of the old schedule are not recorded.
    """
    total = 0
    while True:
        with transaction.atomic():
            pauses = sql.run("recurring/close_pauses", {"job_ids": job_ids, "most": CHUNK})
            record_missed([(each["id"], met) for each in pauses for met in _missed_in_pause(each)])
        total += len(pauses)
        if len(pauses) < CHUNK:
            return total


def _missed_in_pause(pause: Mapping[str, Any]) -> list[MissedSpan]:
    """Return the span of due times in a pause, if any."""
    start, end = pause["paused_from"], pause["over_at"]
    if end is None or end <= start:
        return []
    try:
        return missed_span(due_in(schedule_of(pause), start=start, end=end), MissReason.PAUSED)
    except SPOILT:
        log_events.PAUSE_NOT_RECORDED.log(logger, job=pause["id"], exc_info=True)
        return []
