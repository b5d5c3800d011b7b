"""The actions on one run; cancel and retry of all runs of a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import Field

from jobs.actions import Done
from jobs.actions.filters.runs import RunFilter
from jobs.actions.runs import RUNS
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.problems import Problem
from jobs.api.kit.reasons import ReasonBody
from jobs.api.runs.overriding import Overridden
from jobs.api.runs.reading import etag_of_run
from jobs.api.runs.router import router
from jobs.api.runs.schemas import RunDetails
from jobs.core import barrier
from jobs.models import Run, Scope
from jobs.models.access import Access
from jobs.runs import bulk
from jobs.runs.override import held_by

CANCELS = needs(Scope.OPERATE, "jobs.cancel_run")
RETRIES = needs(Scope.OPERATE, "jobs.retry_run")


class Bulk(ReasonBody):
    """A cancel or retry of all runs of a filter."""

    filter: RunFilter = Field(description="The runs; it has at least one filter.")
    dry_run: bool = Field(False, description="Count only, and change nothing.")


class BulkResult(Schema):
    """The effect of a bulk; of a dry run, the number of runs that it would move."""

    matched: int = Field(description="Runs of the filter that the verb can move, up to 100,000.")
    moved: int
    left: int = Field(description="Not reached in time: repeat the request.")
    dry_run: bool


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


def _selected(access: Access, body: Bulk) -> Any:
    if not body.filter.model_fields_set:
        raise Problem(422, "invalid", "filter: names at least one filter", field="filter")
    runs = access.narrowed(Run.objects.all(), scope=Scope.OPERATE)
    return body.filter.narrow(runs, access=access)


def _shown(request: HttpRequest, _response: HttpResponse, done: Done) -> RunDetails:
    with barrier.lifted():
        return RunDetails.of_run(done.row, caller(request))


def _overridden(_request: HttpRequest, _response: HttpResponse, done: Done) -> Overridden:
    if done.value is None:
        with barrier.lifted():
            return Overridden(overridden=0, held_by=held_by([done.row.id]))
    count, holding = done.value
    return Overridden(overridden=count, held_by=holding)


def _etag(run: Run, request: HttpRequest) -> str:
    return etag_of_run(run, caller(request).sees_arguments(run.owner_id))


serve(
    router,
    RUNS,
    "{uuid:run_id}",
    Answer(schema=RunDetails, of=_shown),
    etag_of=_etag,
    answers={
        "retry": Answer(schema=RunDetails, of=_shown, status=202),
        "override": Answer(schema=Overridden, of=_overridden),
    },
)
