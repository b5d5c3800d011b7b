"""Count waiting runs whose task no live worker of their queue knows, as after a deploy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jobs.core import sql
from jobs.core.conf import setting

MOST: Final = 50_000
"""Most runs that are read: of those blocked for their task, and of the others of each state."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Waiting runs of one task in one queue without a live worker that knows it."""

    queue: str
    task: str
    count: int
    """A lower bound: of a long backlog only the oldest runs are read."""
    due_count: int
    """How many of them are queued."""


def unknown_tasks(*, most: int = MOST) -> list[Unknown]:
    """Return unknown tasks of queues with a live worker, those with most runs first."""
    rows = sql.run("runs/unknown_tasks", {"lease": setting("LEASE_SECONDS"), "most": most})
    return [Unknown(**row) for row in rows]
