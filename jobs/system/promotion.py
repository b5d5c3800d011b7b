"""Promotion: due runs are queued, and runs whose deadline has passed expire.

A due run with calendars is queued if they are open, else held. A queued run that has not started
when they close is held again. An active run whose window has changed is stopped within about a
second, even in a long round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db import transaction

from fleet import crash_point
from jobs.calendars import changes
from jobs.core import prepared
from jobs.core.states import DELAYED, FIRST, State
from jobs.runs import gate
from jobs.runs.celery_outcomes import notify_celery
from jobs.runs.closing import ClosingWatch
from jobs.runs.recording import move, move_apart

CHUNK: Final = 1_000

_DUE = """
SELECT r.id, o.calendar_version > 0 AS is_gated
FROM jobs_run r JOIN jobs_owner o ON o.id = r.owner_id
WHERE r.state IN ('scheduled', 'held', 'retrying') AND r.next_at <= clock_timestamp()
ORDER BY r.next_at LIMIT %s FOR UPDATE OF r SKIP LOCKED
"""
_CLOSED = """
SELECT id FROM jobs_run WHERE state = 'queued' AND not_after <= clock_timestamp()
ORDER BY not_after LIMIT %s FOR UPDATE SKIP LOCKED
"""
# The deadline is for the first start: a run that is tried again has met it.
_TOO_LATE = """
SELECT id FROM jobs_run
WHERE state IN ('scheduled', 'held', 'queued') AND attempt_count = 0
  AND deadline_at <= clock_timestamp()
  -- guard: no run expires because its rollout is stopped
  AND NOT EXISTS (
    SELECT FROM jobs_rollout x
    WHERE x.submission_id = jobs_run.submission_id AND x.state IN ('stopped', 'paused'))
ORDER BY deadline_at LIMIT %s FOR UPDATE SKIP LOCKED
"""


def promote() -> int:
    """Queue due runs; hold those that calendars do not let start. Return how many are queued."""
    watch = ClosingWatch(changes.renew_stale)
    watch.check_now()
    gate.gate_changed(watch)
    _hold_late(watch)
    total = 0
    while (found := _promote_chunk()) is not None:
        crash_point("promotion.after_move")
        total += found
        watch.check()
    return total


def _promote_chunk() -> int | None:
    """Queue a chunk; return how many runs were queued, or None if none is due."""
    with transaction.atomic():
        rows = prepared.query(_DUE, [CHUNK])
        if not rows:
            return None
        gated = [row["id"] for row in rows if row["is_gated"]]
        free = [row["id"] for row in rows if not row["is_gated"]]
        return queue_due(free) + move_apart(gated, _gate)


def queue_due(run_ids: Sequence[UUID]) -> int:
    """Queue locked due runs of owners without calendars; return how many. In a transaction."""
    return move_apart(run_ids, _queue)


def _queue(run_ids: Sequence[UUID]) -> int:
    return len(move(run_ids, to=State.QUEUED, from_states=DELAYED, cause="due"))


def _gate(run_ids: Sequence[UUID]) -> int:
    return gate.gate_runs(run_ids, cause="due")


def _expire(run_ids: Sequence[UUID]) -> int:
    moved = move(run_ids, to=State.EXPIRED, from_states=FIRST, cause="deadline passed")
    transaction.on_commit(lambda: notify_celery(moved), robust=True)
    return len(moved)


def _hold_late(watch: ClosingWatch) -> None:
    """Hold queued runs that were not started while their calendars were open."""
    is_more = True
    while is_more:
        with transaction.atomic():
            ids = [row["id"] for row in prepared.query(_CLOSED, [CHUNK])]
            move_apart(ids, _gate)
            is_more = len(ids) == CHUNK
        watch.check()


def expire() -> int:
    """End every run that has not started by its deadline; return how many."""
    watch, total = ClosingWatch(changes.renew_stale), 0
    while (moved := _expire_chunk()) is not None:
        total += moved
        watch.check()
    return total


def _expire_chunk() -> int | None:
    """End a chunk; return how many runs expired, or None if the deadline of none has passed."""
    with transaction.atomic():
        ids = [row["id"] for row in prepared.query(_TOO_LATE, [CHUNK])]
        return move_apart(ids, _expire) if ids else None
