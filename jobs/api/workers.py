"""Workers: which are alive, what they can run, and which of the caller's runs they have."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from jobs.actions.filters.workers import WorkerFilter
from jobs.actions.workers import WORKERS
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.answers import facts_of
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Run, Scope, Worker
from jobs.runs.reads.workers import WorkerState, active_counts, state_of, with_state

router = Router(tags=["workers"])
READS = needs(Scope.READ, "jobs.view_worker")
SHOWN_RUNS = 1_000


class WorkerSummary(Schema):
    """One boot of one worker node."""

    id: UUID
    hostname: str
    state: WorkerState = Field(
        description="`draining`: it was asked to take no more runs. `idle`: it takes none."
        " `lost`: no heartbeat for a lease."
    )
    slots: int = Field(description="Runs that it can run at once.")
    queues: list[str]
    pool: str
    version: str
    started_at: datetime
    draining_since: datetime | None
    stopped_at: datetime | None
    heartbeat_at: datetime
    heartbeat_age_seconds: float = Field(description="By PostgreSQL's clock.")
    redis_answered_at: datetime | None = Field(
        description="When Redis last answered it, as its last heartbeat reported. If that is more"
        " than 30 s before `heartbeat_at`, it takes no runs. Null: an old version."
    )
    active_runs: int = Field(description="Runs of the caller's owners that it has now.")

    @classmethod
    def of(cls, worker: Any, *, at: datetime, active_runs: int, **more: Any) -> WorkerSummary:
        """Return a worker that was loaded with its state."""
        own = {
            "state": state_of(worker),
            "heartbeat_age_seconds": max(0.0, (at - worker.heartbeat_at).total_seconds()),
            "active_runs": active_runs,
        }
        return cls(**facts_of(cls, worker, **own, **more))


class WorkerDetails(WorkerSummary):
    """One worker, with its tasks and runs."""

    tasks: list[str] | None = Field(description="Null: a version that does not report them.")
    runs: list[UUID] = Field(description="Runs of the caller's owners that it has; 1,000 at most.")


@router.get("", auth=READS, response=PageOf[WorkerSummary], operation_id="list_workers")
def list_workers(
    request: HttpRequest, filters: Query[WorkerFilter], page: Page
) -> PageOf[WorkerSummary]:
    """Return workers, newest first."""
    access = caller(request)
    cursor = Cursor.read(request, page, of="workers", filters=filters)
    # Workers have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        found = filters.narrow(with_state(Worker.objects.all()), access=access)
        rows = list(_next(found, cursor.after)[: cursor.limit + 1])
        at = now()
    shown = rows[: cursor.limit]
    counts = active_counts(access, [worker.id for worker in shown])
    return PageOf[WorkerSummary](
        items=[
            WorkerSummary.of(worker, at=at, active_runs=counts.get(worker.id, 0))
            for worker in shown
        ],
        next=cursor.next([f"{worker.started_at.isoformat()} {worker.id}" for worker in rows]),
    )


@router.get("/{uuid:worker_id}", auth=READS, response=WorkerDetails, operation_id="get_worker")
def get_worker(request: HttpRequest, worker_id: UUID) -> WorkerSummary:
    """Return one worker, with the runs of the caller's owners that it has now."""
    with barrier.lifted():
        worker = with_state(Worker.objects.all()).get(id=worker_id)
        at = now()
    mine = caller(request).narrowed(Run.objects.active()).filter(worker=worker_id)
    runs = list(mine.order_by("id").values_list("id", flat=True)[:SHOWN_RUNS])
    return WorkerDetails.of(worker, at=at, active_runs=len(runs), runs=runs)


serve(
    router,
    WORKERS,
    "{uuid:worker_id}",
    Answer(
        schema=WorkerDetails, of=lambda request, _response, done: get_worker(request, done.row.pk)
    ),
)


def _next(workers: Any, after: str) -> Any:
    if after:
        moment, _, last = after.partition(" ")
        started_at = datetime.fromisoformat(moment)
        same = Q(started_at=started_at, pk__lt=UUID(last))
        workers = workers.filter(Q(started_at__lt=started_at) | same)
    return workers.order_by("-started_at", "-pk")
