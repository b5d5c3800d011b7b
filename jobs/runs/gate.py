"""Gating: whether what waits may be queued now, by the calendars that apply, and when else.

For order and for readers: what may start is decided once more by each admission, on the row and on
PostgreSQL's clock. A run that is held is looked at again when its calendars open, or change.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from jobs.calendars.gate import GateInput, gates, opening_times, why_held
from jobs.core import sql
from jobs.core.sql import alone
from jobs.core.states import State
from jobs.runs.closing import ClosingWatch
from jobs.runs.dispatch import publish_on_commit, withdraw_on_commit
from jobs.runs.recording import write_gates

CHUNK: Final = 1_000
GATING_SECONDS: Final = 1.0
"""Seconds for which one promotion gates what waits of owners whose calendars changed."""

# The version and the place are in the row: the next promotion may be in another process. A change
# that comes meanwhile is gated when the owner is done with the version that it is at.
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
    """Queue these runs if they may start now, and hold them if not; return how many are queued.

    In the caller's transaction; what does not wait is left alone. Hints follow its commit.
    """
    rows = sql.run("runs/select_gated", {"ids": list(run_ids)})
    if not rows:
        return 0
    asked = [
        GateInput(tuple(row["calendars"]), row["needed"], row["window_policy"]) for row in rows
    ]
    # One moment for all: what opens between two of them would be decided twice.
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
    _update_hints(moved)
    return sum(row["state"] == State.QUEUED for row in moved)


def _update_hints(moved: Sequence[dict[str, Any]]) -> None:
    """Have the hints of what is held now, or may start later than they say, taken back."""
    withdraw_on_commit(
        [
            (row["id"], row["token"], row["queue"])
            for row in moved
            if row["before"] == State.QUEUED and (row["state"] != State.QUEUED or row["is_new"])
        ]
    )
    publish_on_commit([row["id"] for row in moved if row["is_new"]])


@alone
def gate_changed(watch: ClosingWatch) -> int:
    """Gate again what waits of owners whose calendars have changed; return how many runs.

    Active runs of these owners were closed before (`ClosingWatch.check_now`). A call works for a
    second and ends with the chunk that it is at; the next promotion goes on from there. Owners take
    turns, a chunk each, in a random order: an owner with many runs, or many changes, does not keep
    others waiting. A call that meets another one returns at once.
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
    """Gate the next chunk of what waits of an owner; return how many runs, and the last of them.

    None in place of the last one when the owner is done. A chunk that a crash parts from its mark
    is gated once more, which is harmless.
    """
    rows = sql.query(_WAITING_OF, [owner_id, last, CHUNK])
    if rows:
        with transaction.atomic():
            gate_runs([row["id"] for row in rows], cause="calendar changed")
    if len(rows) < CHUNK:
        sql.query(_DONE, [owner_id])
        return len(rows), None
    last = rows[-1]["id"]
    sql.query(_MARK, [last, owner_id])
    return len(rows), last
