"""Workers with their state, and how many runs of a caller's owners each has."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from jobs.models import Run, Worker
from jobs.models.access import Access

WorkerState = Literal["alive", "draining", "idle", "lost", "stopped"]
"""Draining: it was asked to take no more runs. Idle: it takes none. Lost: it has not
beaten for a lease."""


def with_state(workers: QuerySet[Any]) -> QuerySet[Any]:
    """Return workers that `state_of` can be asked about."""
    beating = Q(pk__in=Worker.objects.beating().values("pk"))
    return workers.annotate(is_beating=beating)


def state_of(worker: Any) -> WorkerState:
    """Return the state of a worker that was loaded by `with_state`."""
    if worker.stopped_at is not None:
        return "stopped"
    if not worker.is_beating:
        return "lost"
    if worker.draining_since is not None:
        return "draining"
    return "idle" if worker.why_idle() else "alive"


def active_counts(access: Access, workers: Collection[UUID]) -> dict[UUID, int]:
    """Return how many runs of the caller's owners these workers have now, if any."""
    mine = access.narrowed(Run.objects.active()).filter(worker__in=workers).order_by()
    return dict(mine.values_list("worker_id").annotate(count=Count("*")))
