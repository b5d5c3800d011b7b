"""Runs: list, get, timeline, why waiting."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query

from jobs.actions.filters.runs import RunFilter
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.runs.router import router
from jobs.api.runs.schemas import RunDetails, RunSummary, Timeline, Why
from jobs.core import barrier
from jobs.core.states import State
from jobs.models import Run, Scope
from jobs.models.access import Access
from jobs.models.run import RunQuerySet
from jobs.runs.reads.listing import UNLISTED
from jobs.runs.why_waiting import why_waiting

READS = needs(Scope.READ, "jobs.view_run")
ATTEMPTS_LIMIT: Final = 100
WITH: Final = ("owner", "job", "target")
"""The rows with which a run is shown."""


@router.get("", auth=READS, response=PageOf[RunSummary], operation_id="list_runs")
def list_runs(request: HttpRequest, filters: Query[RunFilter], page: Page) -> PageOf[RunSummary]:
    """Return runs, newest first.

    With `task` or `error` a page may be short, even empty, and have a `next` nevertheless.
    """
    access = caller(request)
    cursor = Cursor.read(request, page, of="runs", filters=filters)
    runs = visible_runs(access)
    found = filters.newest(
        runs,
        access=access,
        after=UUID(cursor.after) if cursor.after else None,
        limit=cursor.limit,
    )
    rows: Any = runs.filter(id__in=found.ids).select_related(*WITH).defer(*UNLISTED)
    return PageOf[RunSummary](
        items=[RunSummary.of(run, access) for run in rows.order_by("-id")],
        next=cursor.after_key(found.last) if found.last else None,
    )


@router.get("/{uuid:run_id}", auth=READS, response=RunDetails, operation_id="get_run")
def get_run(request: HttpRequest, response: HttpResponse, run_id: UUID) -> Any:
    """Return one run. Its ETag changes with each move and change, and with its progress."""
    run = find_run(access := caller(request), run_id)
    etag = etag_of_run(run, access.sees_arguments(run.owner_id))
    return unchanged(request, response, etag) or RunDetails.of_run(run, access)


@router.get(
    "/{uuid:run_id}/timeline", auth=READS, response=Timeline, operation_id="get_run_timeline"
)
def get_run_timeline(request: HttpRequest, run_id: UUID) -> Timeline:
    """Return every move of a run with its cause, its newest 100 attempts, and where it was."""
    run = find_run(access := caller(request), run_id)
    attempts = list(run.attempts.order_by("-token")[:ATTEMPTS_LIMIT])
    # Workers have no owner.
    with barrier.lifted():
        return Timeline.of(run, attempts[::-1], access)


@router.get("/{uuid:run_id}/why", auth=READS, response=Why, operation_id="get_run_why")
def get_run_why(request: HttpRequest, run_id: UUID) -> Why:
    """Say in one sentence why a run has not started."""
    run = find_run(caller(request), run_id)
    # It counts other owners' runs before this one, and names no other owner.
    with barrier.lifted():
        return Why(state=State(run.state), why=why_waiting(run))


def visible_runs(access: Access) -> RunQuerySet:
    """Return the runs that a caller sees."""
    return access.narrowed(Run.objects.all())


def find_run(access: Access, run_id: UUID) -> Run:
    """Return a run that the caller sees, with its owner, job and target, or raise DoesNotExist."""
    return visible_runs(access).select_related(*WITH).get(id=run_id)


def etag_of_run(run: Run, with_arguments: bool) -> str:
    """Return the ETag of a run as this caller sees it."""
    progress = run.progress and run.progress["at"]
    moved = (run.id, run.state, run.token, len(run.history), progress, with_arguments)
    times = (run.due_at, run.next_at, run.deadline_at)
    changed = (run.task, run.priority, run.queue, run.labels, bytes(run.payload))
    return etag_of(*moved, *times, *changed)
