"""Cancel and retry: one run, or all of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest
from ninja import Schema
from pydantic import ConfigDict, Field

from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.etags import IF_MATCH_OPTIONAL, refuse_stale
from jobs.api.kit.problems import Problem
from jobs.api.kit.reasons import ReasonBody
from jobs.api.runs.finding import WITH, RunQuery, find_run
from jobs.api.runs.reading import etag_of_run
from jobs.api.runs.router import router
from jobs.api.runs.schemas import RunDetails
from jobs.core import barrier
from jobs.core.errors import StateConflict
from jobs.core.states import State
from jobs.models import Run, Scope
from jobs.models.access import Access
from jobs.runs import bulk
from jobs.runs.manual_retry import retry_run as retry
from jobs.runs.reads.listing import narrow

CANCELS = needs(Scope.OPERATE, "jobs.cancel_run")
RETRIES = needs(Scope.OPERATE, "jobs.retry_run")
IS_CANCELLED = frozenset({State.CANCELLED, State.CANCELLING})


class Retry(ReasonBody):
    """A retry, with the same arguments or with others."""

    arguments: dict[str, Any] | None = Field(
        None, description="All arguments of the new attempts, by name; null: those it has."
    )


class RunSelection(RunQuery):
    """The runs of a filter. At least one filter is needed."""

    model_config = ConfigDict(extra="forbid")


class Bulk(ReasonBody):
    """A cancel or retry of all runs of a filter."""

    filter: RunSelection
    dry_run: bool = Field(False, description="Count only, and change nothing.")


class BulkResult(Schema):
    """The effect of a bulk; of a dry run, the number of runs that it would move."""

    matched: int = Field(description="Runs of the filter that the verb can move, up to 100,000.")
    moved: int
    left: int = Field(description="Not reached in time: repeat the request.")
    dry_run: bool


@router.post(
    "/{uuid:run_id}/cancel",
    auth=CANCELS,
    response=RunDetails,
    operation_id="cancel_run",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def cancel_run(request: HttpRequest, run_id: UUID, body: ReasonBody) -> RunDetails:
    """Cancel a run. One that waits ends at once; a worker is asked to stop one that it has.

    Repeating it changes nothing. A run that has ended otherwise is a conflict.
    """
    with _locked(request, run_id) as run:
        run.cancel(actor=caller(request).actor, reason=body.reason)
        if run.state not in IS_CANCELLED:
            raise StateConflict(str(run.id), run.state, "cancelled")
        return RunDetails.of_run(run, caller(request))


@router.post(
    "/{uuid:run_id}/retry",
    auth=RETRIES,
    response={202: RunDetails},
    operation_id="retry_run",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def retry_run(request: HttpRequest, run_id: UUID, body: Retry) -> RunDetails:
    """Queue a run that failed, expired or was cancelled again, with a fresh set of attempts."""
    with _locked(request, run_id) as run:
        retry(run, arguments=body.arguments, actor=caller(request).actor, reason=body.reason)
        return RunDetails.of_run(run, caller(request))


@router.post("/cancel", auth=CANCELS, response=BulkResult, operation_id="cancel_runs")
def cancel_runs(request: HttpRequest, body: Bulk) -> BulkResult:
    """Cancel all runs of a filter that have not ended."""
    found = bulk.find_cancellable(_selected(caller(request), body))
    return move_found(request, found, bulk.cancel_found, reason=body.reason, dry_run=body.dry_run)


@router.post("/retry", auth=RETRIES, response=BulkResult, operation_id="retry_runs")
def retry_runs(request: HttpRequest, body: Bulk) -> BulkResult:
    """Queue all runs of a filter again that failed, expired or were cancelled."""
    found = bulk.find_reopenable(_selected(caller(request), body))
    return move_found(request, found, bulk.retry_found, reason=body.reason, dry_run=body.dry_run)


def move_found(
    request: HttpRequest,
    found: Sequence[bulk.Found],
    verb: Callable[..., bulk.Moved],
    *,
    reason: str,
    dry_run: bool,
) -> BulkResult:
    """Move runs by a verb of `jobs.runs.bulk`, or only count them."""
    if dry_run:
        return BulkResult(matched=len(found), moved=0, left=0, dry_run=True)
    with barrier.lifted():
        done = verb(found, actor=caller(request).actor, reason=reason)
    return BulkResult(matched=len(found), moved=done.moved, left=done.left, dry_run=False)


@contextmanager
def _locked(request: HttpRequest, run_id: UUID) -> Iterator[Run]:
    """Yield a run, locked with the barrier lifted, if it is the version that If-Match names."""
    found = find_run(access := caller(request), run_id)
    refuse_other_scope(request, Scope.OPERATE, found.owner_id)
    with barrier.lifted(), transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related(*WITH).get(id=found.id)
        refuse_stale(request, etag_of_run(run, access.sees_arguments(run.owner_id)))
        yield run


def _selected(access: Access, body: Bulk) -> Any:
    if not body.filter.model_fields_set:
        raise Problem(422, "invalid", "filter: names at least one filter", field="filter")
    runs = access.narrowed(Run.objects.all(), scope=Scope.OPERATE)
    return narrow(runs, body.filter.wanted, access=access)
