"""Jobs: the actions on them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from jobs.actions import Done
from jobs.actions.jobs import JOBS
from jobs.api.jobs.finding import etag_of_job, find_job
from jobs.api.jobs.router import router
from jobs.api.jobs.schemas import BackfillMade, JobDetails
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller
from jobs.api.runs.schemas import RunDetails
from jobs.core import barrier
from jobs.models import Run


def _read_again(request: HttpRequest, response: HttpResponse, done: Done) -> JobDetails:
    job = find_job(access := caller(request), done.row.pk)
    response["ETag"] = etag_of_job(job, access)
    return JobDetails.of_job(job, with_arguments=access.sees_arguments(job.owner_id))


def _run(request: HttpRequest, response: HttpResponse, done: Done) -> RunDetails:
    made, _is_new = done.value
    with barrier.lifted():
        run = Run.objects.select_related("owner", "job", "target").get(id=made.id)
        response["Location"] = f"{_root(request)}/runs/{run.id}"
        return RunDetails.of_run(run, caller(request))


def _backfill(request: HttpRequest, response: HttpResponse, done: Done) -> Any:
    made = done.value
    if made is None:
        facts = {"start": done.body.start, "end": done.body.end}
        return BackfillMade(id=None, submission=None, count=done.count or 0, made=0, **facts)
    response["Location"] = f"{_root(request)}/backfills/{made.pk}"
    return BackfillMade.of(made)


def _root(request: HttpRequest) -> str:
    """Return the path of the API."""
    return request.path.rpartition("/jobs/")[0]


serve(
    router,
    JOBS,
    "{int:job_id}",
    Answer(schema=JobDetails, of=_read_again),
    etag_of=lambda job, request: etag_of_job(job, caller(request)),
    answers={
        "run": Answer(schema=RunDetails, of=_run, status=202),
        "backfill": Answer(schema=BackfillMade, of=_backfill, status=202),
    },
)
