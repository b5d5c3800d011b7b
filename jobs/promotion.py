"""Promotion: runs whose time has come are queued, and those whose deadline passed expire."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from fleet import crash_point
from jobs import database
from jobs.callbacks import tell_celery
from jobs.recording import move
from jobs.states import DELAYED, WAITING, State

CHUNK: Final = 1_000

# Ordered by id inside the chunk, as every lock on runs is.
_DUE = """
SELECT id FROM jobs_run WHERE state = ANY(%(states)s) AND {column} <= clock_timestamp()
ORDER BY {column} LIMIT %(most)s FOR UPDATE SKIP LOCKED
"""


def promote() -> int:
    """Queue every scheduled, held and retrying run that is due; return how many."""
    total = 0
    while moved := _move_chunk("due_at", states=DELAYED, to=State.QUEUED, cause="due"):
        crash_point("promotion.after_move")
        total += moved
    return total


def expire() -> int:
    """End every waiting run whose deadline has passed; return how many."""
    total = 0
    while moved := _move_chunk(
        "deadline_at", states=WAITING, to=State.EXPIRED, cause="deadline passed"
    ):
        total += moved
    return total


def _move_chunk(column: str, *, states: frozenset[State], to: State, cause: str) -> int:
    with transaction.atomic():
        rows = database.query(
            _DUE.format(column=column),
            {"states": [state.value for state in states], "most": CHUNK},
        )
        moved = move([row["id"] for row in rows], to=to, of=states, cause=cause) if rows else []
        if to is State.EXPIRED and moved:
            transaction.on_commit(lambda: tell_celery(moved), robust=True)
    return len(moved)
