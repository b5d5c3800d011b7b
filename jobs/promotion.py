"""Promotion: runs whose time has come are queued, and those whose deadline passed expire."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from fleet import crash_point
from jobs import database
from jobs.callbacks import tell_celery
from jobs.recording import move
from jobs.states import DELAYED, FIRST, State

CHUNK: Final = 1_000

_DUE = """
SELECT id FROM jobs_run
WHERE state IN ('scheduled', 'held', 'retrying') AND next_at <= clock_timestamp()
ORDER BY next_at LIMIT %s FOR UPDATE SKIP LOCKED
"""
# A deadline is one for the first start: a run that is tried again has met it.
_TOO_LATE = """
SELECT id FROM jobs_run
WHERE state IN ('scheduled', 'held', 'queued') AND attempt_count = 0
  AND deadline_at <= clock_timestamp()
ORDER BY deadline_at LIMIT %s FOR UPDATE SKIP LOCKED
"""


def promote() -> int:
    """Queue every scheduled, held and retrying run that is due; return how many."""
    total = 0
    while moved := _move_chunk(_DUE, to=State.QUEUED, cause="due"):
        crash_point("promotion.after_move")
        total += moved
    return total


def expire() -> int:
    """End every run that has not started by its deadline; return how many."""
    total = 0
    while moved := _move_chunk(_TOO_LATE, to=State.EXPIRED, cause="deadline passed"):
        total += moved
    return total


def _move_chunk(select: str, *, to: State, cause: str) -> int:
    with transaction.atomic():
        ids = [row["id"] for row in database.query(select, [CHUNK])]
        moved = move(ids, to=to, of=FIRST | DELAYED, cause=cause) if ids else []
        if to is State.EXPIRED and moved:
            transaction.on_commit(lambda: tell_celery(moved), robust=True)
    return len(moved)
