"""Jobs: list, get, next due times, last results, missed spans."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from jobs.actions.filters.jobs import JobFilter
from jobs.api.jobs.bodies import DueTime
from jobs.api.jobs.finding import etag_of_job, find_job, listed_jobs
from jobs.api.jobs.router import router
from jobs.api.jobs.schemas import (
    JobDetails,
    JobResult,
    JobResults,
    JobSummary,
    MissedSpan,
    NextTimes,
)
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf, newest_first
from jobs.core.sql import now
from jobs.core.zones import zone_names
from jobs.models import Missed, Scope
from jobs.recurring.upcoming import upcoming
from jobs.runs.reads.counts import last_results

READS = needs(Scope.READ, "jobs.view_job")
Count = Annotated[int, Query(), Field(ge=1, le=100, description="Most times.")]


@router.get("", auth=READS, response=PageOf[JobSummary], operation_id="list_jobs")
def list_jobs(request: HttpRequest, filters: Query[JobFilter], page: Page) -> PageOf[JobSummary]:
    """Return jobs, by owner and key, without their arguments."""
    access = caller(request)
    cursor = Cursor.read(request, page, of="jobs", filters=filters)
    rows = list(listed_jobs(access, filters, after=cursor.after)[: cursor.limit + 1])
    return PageOf[JobSummary](
        items=[JobSummary.of(job) for job in rows[: cursor.limit]],
        next=cursor.next([f"{job.owner_id}:{job.key}" for job in rows]),
    )


@router.get("/{int:job_id}", auth=READS, response=JobDetails, operation_id="get_job")
def get_job(request: HttpRequest, response: HttpResponse, job_id: int) -> Any:
    """Return one job. Its ETag changes with each change."""
    job = find_job(access := caller(request), job_id)
    return unchanged(request, response, etag_of_job(job, access)) or JobDetails.of_job(
        job, with_arguments=access.sees_arguments(job.owner_id)
    )


@router.get("/{int:job_id}/next", auth=READS, response=NextTimes, operation_id="get_job_next")
def get_job_next(request: HttpRequest, job_id: int, count: Count = 10) -> NextTimes:
    """Return the next due times of a job, with notes on changes of its zone's clock."""
    job = find_job(caller(request), job_id)
    found = upcoming(job, now=now(), count=count)
    zone = ZoneInfo(found.zone if found.zone in zone_names() else "UTC")
    return NextTimes(
        words=found.words,
        zone=found.zone,
        paused_until=job.paused_until,
        problem=found.problem,
        items=[
            DueTime(at=at, local=at.astimezone(zone), note=note)
            for at, note in zip(found.times, found.notes, strict=True)
        ],
    )


@router.get(
    "/{int:job_id}/results", auth=READS, response=JobResults, operation_id="get_job_results"
)
def get_job_results(request: HttpRequest, job_id: int) -> JobResults:
    """Return the states of the last 20 runs of a job, newest first."""
    job = find_job(caller(request), job_id)
    found = last_results([job.pk]).get(job.pk, [])
    return JobResults(items=[JobResult(id=one.id, state=one.state) for one in found])


@router.get(
    "/{int:job_id}/missed",
    auth=READS,
    response=PageOf[MissedSpan],
    operation_id="list_missed_of_job",
)
def list_missed_of_job(request: HttpRequest, job_id: int, page: Page) -> PageOf[MissedSpan]:
    """Return the due times of a job that were not run, as spans, newest first."""
    access = caller(request)
    rows = access.narrowed(Missed.objects.filter(job=find_job(access, job_id)))
    return newest_first(request, page, rows, MissedSpan.of, of="missed", filters=job_id)
