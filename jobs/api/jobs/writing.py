"""Jobs: create, replace, change, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse

from jobs.actions.owning import owner_named
from jobs.api.jobs.bodies import JobChange, JobToCreate, JobToReplace
from jobs.api.jobs.finding import etag_of_job, found_to_change
from jobs.api.jobs.refusals import of_one_job
from jobs.api.jobs.router import router
from jobs.api.jobs.schemas import JobDetails
from jobs.api.kit.answers import sent
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import IF_MATCH, stale
from jobs.api.kit.problems import Problem
from jobs.api.runs.submitting import refuse_unoffered
from jobs.core import barrier
from jobs.definitions.present import patched
from jobs.definitions.single import change_job, create_job
from jobs.models import Job, Scope
from jobs.models.access import Access
from jobs.owners.caps import refuse_more_jobs

CREATES = needs(Scope.ADMIN, "jobs.add_job")
CHANGES = needs(Scope.ADMIN, "jobs.change_job")


@router.post("", auth=CREATES, response={201: JobDetails}, operation_id="create_job")
def create(request: HttpRequest, response: HttpResponse, body: JobToCreate) -> HttpResponse:
    """Create a job. A key that the owner has already is a conflict."""
    access = caller(request)
    owner = owner_named(access, body.owner, Scope.ADMIN)
    refuse_unoffered(body.task)
    given = body.given
    given.pop("owner", None)
    with barrier.lifted(), of_one_job():
        refuse_more_jobs(owner.pk, adding=1)
        job = create_job(owner, given, actor=access.actor)
    if job is None:
        detail = "The owner has a job of this key already: read it, and change it."
        raise Problem(409, "job_exists", detail, field="key")
    response["Location"] = f"{request.path}/{job.pk}"
    return _shown(job, access, response, status=201)


@router.put(
    "/{int:job_id}",
    auth=CHANGES,
    response=JobDetails,
    operation_id="replace_job",
    openapi_extra=IF_MATCH,
)
def replace_job(
    request: HttpRequest, response: HttpResponse, job_id: int, body: JobToReplace
) -> HttpResponse:
    """Give a job all these fields; those that are missing take their defaults. Needs If-Match.

    The key, the owner and a pause stay.
    """
    job = found_to_change(request, job_id)
    return _changed(request, response, job, body.given)


@router.patch(
    "/{int:job_id}",
    auth=CHANGES,
    response=JobDetails,
    operation_id="change_job",
    openapi_extra=IF_MATCH,
)
def patch_job(
    request: HttpRequest, response: HttpResponse, job_id: int, body: JobChange
) -> HttpResponse:
    """Change the fields of a job that are sent; null sets the default. Needs If-Match.

    A field of another kind of schedule takes the place of the present kind's.
    """
    job = found_to_change(request, job_id)
    return _changed(request, response, job, patched(job, body.given))


def _changed(
    request: HttpRequest, response: HttpResponse, job: Job, given: Mapping[str, Any]
) -> HttpResponse:
    access = caller(request)
    if given["task"] != job.task:
        refuse_unoffered(given["task"])
    with barrier.lifted(), of_one_job():
        changed = change_job(job, given, actor=access.actor)
    if changed is None:
        raise stale()
    return _shown(changed, access, response)


def _shown(job: Job, access: Access, response: HttpResponse, *, status: int = 200) -> HttpResponse:
    response["ETag"] = etag_of_job(job, access)
    details = JobDetails.of_job(job, with_arguments=access.sees_arguments(job.owner_id))
    return sent(details, response, status=status)
