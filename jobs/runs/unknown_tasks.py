"""Runs whose task no live worker of their queue knows, counted.

As a deploy leaves them that renames or removes a task. They wait until a worker knows the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jobs.core import sql
from jobs.core.conf import setting

MOST: Final = 50_000
"""How many runs that met a worker without their task, and how many others of each waiting state,
are read at most to count them."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Waiting runs of one task in one queue, of which no live worker knows it."""

    queue: str
    task: str
    count: int
    """At least: of a long backlog only the oldest runs are looked at."""
    due_count: int
    """How many of them are queued."""


def unknown_tasks(*, most: int = MOST) -> list[Unknown]:
    """Return the tasks of waiting runs that no live worker of their queue knows, most runs first.

    Of queues without a live worker nothing is said.
    """
    rows = sql.run("runs/unknown_tasks", {"lease": setting("LEASE_SECONDS"), "most": most})
    return [Unknown(**row) for row in rows]
