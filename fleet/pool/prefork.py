"""Celery's pool by its own door: a `TaskPool` with other processes behind it."""

from __future__ import annotations

from typing import Any

from celery.concurrency import prefork

from fleet.pool.processes import Processes


class TaskPool(prefork.TaskPool):
    """Prefork, whose processes pull their jobs."""

    Pool = Processes


def children_of(pool: Any) -> Processes | None:
    """Return the processes of a worker's pool if it is of this kind, else None."""
    children = getattr(pool, "_pool", None)
    return children if isinstance(children, Processes) else None
