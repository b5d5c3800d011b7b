"""Overlap: what becomes of a due time while an earlier run of its job is open.

The due times of jobs that do not allow overlap are judged before runs are made: some are recorded
as missed, some cancel open runs. The job's row is locked meanwhile, against a second tick.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.db import OperationalError, transaction
from psycopg.errors import LockNotAvailable

from jobs.core import sql
from jobs.models import OverlapPolicy
from jobs.models.recurring import MissReason
from jobs.recurring.missed import JobMissed, record_missed
from jobs.runs.cancellation import cancel_runs
from jobs.schedules import moment_of
from jobs.schedules.misfire import MissedSpan

Pair = tuple[int, int]
"""A job and the slot of a due time."""


@dataclass(slots=True)
class OpenRuns:
    """The runs of a job that have not ended: those that wait, and those that a worker has."""

    waiting: list[UUID] = field(default_factory=list)
    active: list[UUID] = field(default_factory=list)


def runs_to_start(policy: str, due: Sequence[int], open_runs: OpenRuns) -> Sequence[int]:
    """Return which of a job's due times, given in order, get a run; the others are missed. Pure.

    `skip`: the first, and none while a run is open. `queue`: the first, and none while a run waits.
    `cancel`: the last.
    """
    match policy:
        case OverlapPolicy.SKIP:
            return [] if open_runs.waiting or open_runs.active else due[:1]
        case OverlapPolicy.QUEUE:
            return [] if open_runs.waiting else due[:1]
        case OverlapPolicy.CANCEL:
            return due[-1:]
        case _:
            return due


class OverlapResult(NamedTuple):
    """Due times that are to get a run, and those of jobs that another transaction has locked."""

    chosen: list[Pair]
    locked: list[Pair]


@transaction.atomic
def apply_overlap(pairs: Sequence[Pair]) -> OverlapResult:
    """Return the due times that are to get a run, by the overlap policies of their jobs.

    Call it in the transaction that makes the runs. The other due times are recorded as missed; for
    `cancel`, open runs are cancelled. Due times with a run or a record are not judged again, so it
    can be repeated. Jobs that stay locked for longer than `sql.bound_waits` allows are not judged.
    """
    ids = sorted({job_id for job_id, _ in pairs})
    rows = _lock(ids) if ids else []
    locked = {row["id"] for row in rows if row["is_locked"]}
    policies = {row["id"]: row["overlap"] for row in rows if not row["is_locked"]}
    chosen = [pair for pair in pairs if pair[0] not in policies and pair[0] not in locked]
    waiting = [pair for pair in pairs if pair[0] in locked]
    if not policies:
        return OverlapResult(chosen, waiting)
    due, open_runs = _due_and_open(sorted({pair for pair in pairs if pair[0] in policies}))
    doomed: list[UUID] = []
    missed: list[JobMissed] = []
    for job_id, slots in due.items():
        runs = open_runs.get(job_id, OpenRuns())
        kept = runs_to_start(policies[job_id], slots, runs)
        chosen += [(job_id, slot) for slot in kept]
        missed += [(job_id, _span(slot)) for slot in slots if slot not in kept]
        if policies[job_id] == OverlapPolicy.CANCEL:
            doomed += [*runs.waiting, *runs.active]
    record_missed(missed)
    if doomed:
        cancel_runs(doomed, reason="the next run was due")
    return OverlapResult(chosen, waiting)


def _lock(ids: Sequence[int]) -> list[dict[str, Any]]:
    """Lock all of these jobs, or after a short wait those that are not locked."""
    try:
        with transaction.atomic():
            return sql.run("recurring/lock_overlap_jobs", {"job_ids": ids})
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
    return sql.run("recurring/lock_overlap_jobs_nowait", {"job_ids": ids})


def _due_and_open(pairs: Sequence[Pair]) -> tuple[dict[int, list[int]], dict[int, OpenRuns]]:
    """Return, by job, the due times that are not done yet, in order, and the open runs."""
    done: set[Pair] = set()
    open_runs: dict[int, OpenRuns] = defaultdict(OpenRuns)
    for row in sql.run("recurring/overlap_state", sql.columns(pairs, "job_ids", "slots")):
        if row["kind"] == "done":
            done.add((row["job_id"], row["slot"]))
        else:
            getattr(open_runs[row["job_id"]], row["kind"]).append(row["run_id"])
    due: dict[int, list[int]] = defaultdict(list)
    for job_id, slot in pairs:
        if (job_id, slot) not in done:
            due[job_id].append(slot)
    return due, open_runs


def _span(slot: int) -> MissedSpan:
    return MissedSpan(moment_of(slot), moment_of(slot), 1, MissReason.OVERLAP)
