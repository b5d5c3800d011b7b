"""Jobs: pause, resume, run now, backfill."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from django.http import HttpRequest, HttpResponse

from jobs.api.jobs.bodies import BackfillToMake, JobPause
from jobs.api.jobs.finding import etag_of_job, find_job, locked_to_operate
from jobs.api.jobs.router import router
from jobs.api.jobs.schemas import BackfillMade, JobDetails
from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.etags import IF_MATCH_OPTIONAL
from jobs.api.kit.problems import Problem
from jobs.api.kit.reasons import ReasonBody
from jobs.api.runs.schemas import RunDetails
from jobs.api.runs.submitting import IdempotencyKey
from jobs.core import barrier
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.models import Job, Run, Scope
from jobs.owners.caps import refuse_more_runs
from jobs.recurring.backfill import backfill_once, count_backfill
from jobs.recurring.pause import pause_jobs
from jobs.runs.submission import run_job_by_key

PAUSES = needs(Scope.OPERATE, "jobs.pause_job")
RUNS = needs(Scope.SUBMIT, "jobs.run_job")
BACKFILLS = needs(Scope.OPERATE, "jobs.run_job")
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""As far as schedules go."""


@router.post(
    "/{int:job_id}/pause",
    auth=PAUSES,
    response=JobDetails,
    operation_id="pause_job",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def pause_job(
    request: HttpRequest, response: HttpResponse, job_id: int, body: JobPause
) -> JobDetails:
    """Let the schedule of a job make no runs until a time. It can still be run by hand."""
    with locked_to_operate(request, job_id) as job:
        if not now() < body.until < LATEST:
            raise OptionError("until", f"is in the future, before {LATEST:%Y-%m-%d}")
        pause_jobs([job.pk], until=body.until, actor=caller(request).actor, reason=body.reason)
    return _read_again(request, response, job_id)


@router.post(
    "/{int:job_id}/resume",
    auth=PAUSES,
    response=JobDetails,
    operation_id="resume_job",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def resume_job(
    request: HttpRequest, response: HttpResponse, job_id: int, body: ReasonBody
) -> JobDetails:
    """End the pause of a job. Without a pause it changes nothing."""
    with locked_to_operate(request, job_id) as job:
        if job.paused_until is not None:
            pause_jobs([job.pk], until=None, actor=caller(request).actor, reason=body.reason)
    return _read_again(request, response, job_id)


@router.post("/{int:job_id}/run", auth=RUNS, response={202: RunDetails}, operation_id="run_job")
def run_job(
    request: HttpRequest,
    response: HttpResponse,
    job_id: int,
    body: ReasonBody,
    idempotency_key: IdempotencyKey = None,
) -> RunDetails:
    """Submit one run of a job now, also during a pause. A job that is off is a conflict."""
    job = _found_to_run(request, job_id, Scope.SUBMIT)
    access = caller(request)
    with barrier.lifted():
        refuse_more_runs(job.owner_id, adding=1)
        made, _ = run_job_by_key(
            job, idempotency_key=idempotency_key, actor=access.actor, reason=body.reason
        )
        run = Run.objects.select_related("owner", "job", "target").get(id=made.id)
        response["Location"] = f"{request.path.rpartition('/jobs/')[0]}/runs/{run.id}"
        return RunDetails.of_run(run, access)


@router.post(
    "/{int:job_id}/backfill",
    auth=BACKFILLS,
    response={202: BackfillMade},
    operation_id="backfill_job",
)
def backfill_job(
    request: HttpRequest,
    response: HttpResponse,
    job_id: int,
    body: BackfillToMake,
    idempotency_key: IdempotencyKey = None,
) -> BackfillMade:
    """Run the due times of a past range once more, by the job's present schedule."""
    job = _found_to_run(request, job_id, Scope.OPERATE)
    with barrier.lifted():
        count = count_backfill(job, body.start, body.end)
        if body.dry_run:
            return BackfillMade(
                id=None, submission=None, count=count, made=0, start=body.start, end=body.end
            )
        refuse_more_runs(job.owner_id, adding=count)
        made, _ = backfill_once(
            job,
            body.start,
            body.end,
            idempotency_key=idempotency_key,
            actor=caller(request).actor,
            reason=body.reason,
        )
        response["Location"] = f"{request.path}s/{made.pk}"
        return BackfillMade.of(made)


def _found_to_run(request: HttpRequest, job_id: int, scope: Scope) -> Job:
    job = find_job(caller(request), job_id)
    refuse_other_scope(request, scope, job.owner_id)
    if not job.enabled:
        raise Problem(409, "job_disabled", "The job is not enabled, so it makes no runs.")
    return job


def _read_again(request: HttpRequest, response: HttpResponse, job_id: int) -> JobDetails:
    job = find_job(access := caller(request), job_id)
    response["ETag"] = etag_of_job(job, access)
    return JobDetails.of_job(job, with_arguments=access.sees_arguments(job.owner_id))
