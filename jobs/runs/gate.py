"""Gating: queues waiting runs that their calendars allow to start, and holds the others.

Held runs are gated again when calendars open or change. Each admission decides again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from django.db import transaction

from jobs.calendars.gate import GateInput, gates, opening_times, why_held
from jobs.core import sql
from jobs.core.sql import alone
from jobs.core.states import State
from jobs.runs.closing import ClosingWatch
from jobs.runs.dispatch import publish_on_commit, withdraw_on_commit
from jobs.runs.recording import move_apart, write_gates

CHUNK: Final = 1_000
GATING_SECONDS: Final = 1.0
"""Seconds for which one promotion gates waiting runs of owners whose calendars changed."""

# The owner's row has the progress, so that any process can continue. If calendars change again, the
# owner's runs are gated once more, after this pass.
_BEGIN: Final = """
UPDATE jobs_owner SET gating_version = %s, gated_to = %s
WHERE id = %s AND gated_to IS NULL AND gated_version < %s
"""
_BEGUN: Final = "SELECT id, gated_to FROM jobs_owner WHERE gated_to IS NOT NULL ORDER BY random()"
_MARK: Final = "UPDATE jobs_owner SET gated_to = %s WHERE id = %s"
_DONE: Final = "UPDATE jobs_owner SET gated_version = gating_version, gated_to = NULL WHERE id = %s"
_WAITING_OF: Final = """
SELECT id FROM jobs_run
WHERE owner_id = %s AND state IN ('held', 'queued') AND id > %s ORDER BY id LIMIT %s
"""


def gate_runs(run_ids: Sequence[UUID], *, cause: str) -> int:
    """Queue those of these runs that may start now, hold the others; return how many are queued.

    Call it in a transaction. Runs that do not wait are skipped. Hints are published after commit.
    """
    rows = sql.run("runs/select_gated", {"ids": list(run_ids)})
    if not rows:
        return 0
    asked = [
        GateInput(tuple(row["calendars"]), row["needed"], row["window_policy"]) for row in rows
    ]
    # The same `now` for all runs: a calendar may open between two readings of the clock.
    now = rows[-1]["now"]
    found = gates(asked, now=now, ids=[row["id"] for row in rows])
    moved = write_gates(
        [
            (
                row["id"],
                *opening_times(gate, now=now, needed=row["needed"]),
                cause if gate.is_open else why_held(gate),
            )
            for row, gate in zip(rows, found, strict=True)
        ]
    )
    queued = [row for row in moved if row["before"] == State.QUEUED]
    withdraw_on_commit(row for row in queued if row["state"] != State.QUEUED or row["is_new"])
    publish_on_commit([row["id"] for row in moved if row["is_new"]])
    return sum(row["state"] == State.QUEUED for row in moved)


@alone
def gate_changed(watch: ClosingWatch) -> int:
    """Gate again the waiting runs of owners whose calendars have changed; return how many runs.

    A call works for a second and finishes its chunk; the next promotion continues. Owners take
    turns, a chunk each, in random order: none delays the others. A concurrent call returns at once.
    """
    until = time.monotonic() + GATING_SECONDS
    for owner_id, version in watch.closed.items():
        sql.query(_BEGIN, [version, UUID(int=0), owner_id, version])
    turns = deque((row["id"], row["gated_to"]) for row in sql.query(_BEGUN))
    total = 0
    while turns:
        owner_id, last = turns.popleft()
        count, last = _gate_chunk(owner_id, last)
        total += count
        if last is not None:
            turns.append((owner_id, last))
        if time.monotonic() >= until:
            break
        watch.check()
    return total


def _gate_chunk(owner_id: int, last: UUID) -> tuple[int, UUID | None]:
    """Gate the next chunk of an owner's waiting runs; return how many runs, and the last of them.

    The last is None when the owner is done. After a crash, the chunk is gated again.
    """
    rows = sql.query(_WAITING_OF, [owner_id, last, CHUNK])
    if rows:
        with transaction.atomic():
            move_apart([row["id"] for row in rows], partial(gate_runs, cause="calendar changed"))
    if len(rows) < CHUNK:
        sql.query(_DONE, [owner_id])
        return len(rows), None
    last = rows[-1]["id"]
    sql.query(_MARK, [last, owner_id])
    return len(rows), last
