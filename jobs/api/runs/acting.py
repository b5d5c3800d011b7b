"""The actions on one run, and on all runs of a filter."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from jobs.actions import Done
from jobs.actions.filters.runs import RunFilter
from jobs.actions.runs import RUNS
from jobs.api.kit.actions import Answer, serve, serve_all
from jobs.api.kit.callers import caller
from jobs.api.runs.reading import etag_of_run
from jobs.api.runs.router import router
from jobs.api.runs.schemas import Overridden, RunDetails
from jobs.core import barrier
from jobs.models import Run
from jobs.runs.override import held_by


def _shown(request: HttpRequest, _response: HttpResponse, done: Done) -> RunDetails:
    with barrier.lifted():
        return RunDetails.of_run(done.row, caller(request))


def _overridden(_request: HttpRequest, _response: HttpResponse, done: Done) -> Overridden:
    return Overridden.of(done, lambda: held_by([done.row.id]))


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
serve_all(router, RUNS, RunFilter)
