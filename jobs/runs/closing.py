"""Closing: active runs are stopped when their window is revoked, shortened or frozen.

Only for calendars that end active runs. A close that admission knew is a time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from django.db import transaction

from jobs.core import prepared, sql
from jobs.core.states import State
from jobs.runs.recording import move, move_apart

CHUNK: Final = 1_000
CHECK_SECONDS: Final = 1.0
"""Seconds between two checks for changed calendars, while a promotion round does other work."""

# Where gating of the newest version has begun, the owner's active runs were closed before.
_CHANGED_OWNERS: Final = """
SELECT id, calendar_version AS version FROM jobs_owner
WHERE greatest(gated_version, gating_version) < calendar_version ORDER BY id
"""
_CLOSED: Final = """
SELECT id FROM jobs_run
WHERE state IN ('admitted', 'running') AND stop_at <= clock_timestamp()
ORDER BY stop_at LIMIT %s FOR UPDATE SKIP LOCKED
"""


class ClosingWatch:
    """Checks for changed calendars, at most once a second while a round does other work."""

    def __init__(self, renew: Callable[[], object]) -> None:
        """`renew` is called before each check: it makes the openings of changed calendars."""
        self._renew = renew
        self.closed: dict[int, int] = {}
        """The calendar version by which each changed owner's active runs were closed."""
        self._checked_at = time.monotonic()

    def check(self) -> None:
        """Check if the last check is a second old. Call it between two chunks of other work."""
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            self.check_now()

    def check_now(self) -> None:
        """Stop the active runs that changed calendars end, and those whose stop time has come."""
        self._renew()
        for row in sql.query(_CHANGED_OWNERS):
            if self.closed.get(row["id"]) != row["version"]:
                close_runs(row["id"])
                self.closed[row["id"]] = row["version"]
        stop_closed()
        self._checked_at = time.monotonic()


def close_runs(owner_id: int) -> int:
    """Set when an owner's active runs stop, by its current calendars; return how many changed."""
    with transaction.atomic():
        changed = sql.run("runs/set_stop_at", {"owner": owner_id})
    if any(row["stop_at"] is not None for row in changed):
        stop_closed()
    return len(changed)


def stop_closed() -> int:
    """Ask workers to stop the runs whose stop time has come, as a cancel does; return how many."""
    total, is_more = 0, True
    while is_more:
        with transaction.atomic():
            ids = [row["id"] for row in prepared.query(_CLOSED, [CHUNK])]
            total += move_apart(ids, _cancel)
            is_more = len(ids) == CHUNK
    return total


def _cancel(run_ids: Sequence[UUID]) -> int:
    return len(move(run_ids, to=State.CANCELLING, cause="window closed"))
