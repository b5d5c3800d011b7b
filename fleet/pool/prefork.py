"""Celery's pool by its own door: a `TaskPool` with other processes behind it."""

from __future__ import annotations

from typing import Any

from celery.concurrency import prefork

from fleet.pool.processes import Processes


class TaskPool(prefork.TaskPool):
    """Prefork, whose processes pull their jobs."""

    Pool = Processes

    @property
    def info(self) -> dict[str, Any]:
        """What `inspect stats` shows, with the names of Celery's own pool."""
        pool: Processes = self._pool
        return {
            "implementation": f"{type(self).__module__}:{type(self).__name__}",
            "max-concurrency": self.limit,
            "processes": [child.pid for child in pool.children],
            "max-tasks-per-child": pool.most_jobs or "N/A",
            "put-guarded-by-semaphore": self.putlocks,
            "timeouts": (pool.soft_timeout or 0, pool.timeout or 0),
            "writes": pool.statistics(),
        }

    @property
    def num_processes(self) -> int:
        """How many processes the pool is to have; raises AttributeError when it has ended."""
        count: int = self._pool.count
        return count


def children_of(pool: Any) -> Processes | None:
    """Return the processes of a worker's pool if it is of this kind, else None."""
    children = getattr(pool, "_pool", None)
    return children if isinstance(children, Processes) else None
