"""Misfires: due times that nobody was there to run are run late, or recorded as missed.

Every due time since a job's schedule holds is either run or inside exactly one record; none is
silent. A pause is recorded when it is over, as one span.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models.functions import Now

from jobs import database
from jobs.due_spans import MINUTE, delay_of, due_in, schedule_of, without
from jobs.errors import FairshiftError
from jobs.missed import MisfireRule, MissedSpan, decide, pause_off, span
from jobs.missed_records import Noted, note, recorded
from jobs.models import Tick
from jobs.models.recurring import MissReason
from jobs.overlap import Pair, sift
from jobs.schedules import moment_of, slot_of
from jobs.storing import now
from jobs.triggering import make_runs, send_hints

logger = logging.getLogger(__name__)

CHUNK: Final = 5_000
"""Jobs that are looked at in one transaction."""

# A server that does not hear from us any more gives the locks to others after this time.
_SILENCE: Final = "SET LOCAL idle_in_transaction_session_timeout = '30s'"

RUNS: Final = 20_000
"""When a chunk has so many runs to make, the other jobs wait for the next."""


def catch_up(tick: Tick) -> int:
    """Judge the due times in a tick of kind `catch_up` by each job's policy; return the runs made.

    Goes over the jobs in the order of their ids and commits chunk by chunk: killed, it goes on
    where it was; met by another worker at the same tick, it leaves the tick to that one.
    Raises BrokerUnavailable while hints of jobs without history cannot be published: their chunk
    is then judged again.
    """
    total = 0
    while (count := _catch_up_chunk(tick.pk)) is not None:
        total += count
    return total


def _catch_up_chunk(tick_id: int) -> int | None:
    """Judge the next jobs of a tick; return how many runs that made, None when none are left."""
    with transaction.atomic():
        database.query(_SILENCE)
        open_ticks = Tick.objects.select_for_update(skip_locked=True)
        tick = open_ticks.filter(pk=tick_id, done_at=None).first()
        if tick is None:
            return None
        start, end = moment_of(tick.first_slot), moment_of(tick.end_slot)
        jobs = database.run(
            "catch_up_jobs", {"after_id": tick.after_job, "end": end, "most": CHUNK}
        )
        if not jobs:
            Tick.objects.filter(pk=tick_id).update(done_at=Now())
            return None
        judged = _judge(jobs, start=start, end=end)
        note(judged.missed)
        total = make_runs(sift(judged.pairs)) + send_hints(judged.pairs)
        # Heard of: the pulse sends no other to a tick whose chunks are done one by one.
        Tick.objects.filter(pk=tick_id).update(after_job=judged.after_job, sent_at=Now())
        return total


@dataclass(frozen=True, slots=True)
class _Judged:
    pairs: list[Pair]
    missed: list[Noted]
    after_job: int


def _judge(jobs: Sequence[Mapping[str, Any]], *, start: datetime, end: datetime) -> _Judged:
    known = recorded([job["id"] for job in jobs], start=start, end=end)
    at = now()
    judged = _Judged([], [], 0)
    for job in jobs:
        spans = known.get(job["id"], [])
        try:
            runs, missed = _of_job(job, spans, start=start, end=end, at=at)
        except FairshiftError:
            # A row that was written by hand stops no other.
            logger.exception("job %s has no schedule that can be caught up", job["id"])
            runs, missed = [], []
        judged.pairs.extend((job["id"], slot_of(due)) for due in runs)
        judged.missed.extend((job["id"], each) for each in missed)
        if len(judged.pairs) >= RUNS:
            break
    return _Judged(judged.pairs, judged.missed, job["id"])


def _of_job(
    job: Mapping[str, Any],
    known: Sequence[tuple[datetime, datetime]],
    *,
    start: datetime,
    end: datetime,
    at: datetime,
) -> tuple[list[datetime], list[MissedSpan]]:
    schedule = schedule_of(job)
    delay = delay_of(schedule)
    # A tick has the slots in which jobs are triggered; a smooth one was due up to a minute before.
    since = max(job["effective_from"], start - delay)
    due = due_in(schedule, start=start - MINUTE, end=end, since=since)
    due = due[: bisect_left(due, end - delay)]
    rows: list[Sequence[datetime]] = without(due, known)
    paused: list[MissedSpan] = []
    if job["paused_until"] is not None:
        rows, paused = pause_off(
            rows, paused_from=job["paused_from"], paused_until=job["paused_until"]
        )
    rule = MisfireRule(
        policy=job["misfire"],
        cap=job["misfire_cap"],
        deadline_seconds=job["misfire_deadline_seconds"],
    )
    runs, missed = decide(rows, rule, now=at)
    return runs, [*paused, *missed]


def record_pauses(job_ids: Sequence[int] | None = None) -> int:
    """Record what pauses that are over kept from running; return how many pauses that were.

    Of these jobs, or of all. Whoever pauses or resumes a job calls it in the same transaction, so
    that one pause ends before the next begins; the sweep calls it for pauses that end by
    themselves. A schedule that is changed during a pause begins it anew: what the old one would
    have run until then is not recorded.
    """
    total = 0
    while True:
        with transaction.atomic():
            pauses = database.run("pauses", {"job_ids": job_ids, "most": CHUNK})
            note([(each["id"], met) for each in pauses for met in _met(each)])
        total += len(pauses)
        if len(pauses) < CHUNK:
            return total


def _met(pause: Mapping[str, Any]) -> list[MissedSpan]:
    """Return the span of due times in a pause, if any."""
    start, end = pause["paused_from"], pause["over_at"]
    if end is None or end <= start:
        return []
    try:
        return span(due_in(schedule_of(pause), start=start, end=end), MissReason.PAUSED)
    except FairshiftError:
        logger.exception("job %s has no schedule that can be read", pause["id"])
        return []
