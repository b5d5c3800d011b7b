"""Find jobs for a caller: one by its id, many by filters that indexes answer."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from jobs.actions import find, refuse_without_scope
from jobs.actions.filters.jobs import JobFilter
from jobs.actions.jobs import JOBS
from jobs.api.kit.callers import caller
from jobs.api.kit.etags import etag_of, refuse_stale
from jobs.models import Job, Scope
from jobs.models.access import Access


def listed_jobs(access: Access, wanted: JobFilter, *, after: str) -> QuerySet[Job]:
    """Return the jobs of a filter that the caller sees, by owner and key, after a place."""
    jobs: Any = access.narrowed(Job.objects.select_related("owner", "target").defer("payload"))
    jobs = wanted.narrow(jobs, access=access)
    if after:
        owner_id, _, key = after.partition(":")
        jobs = jobs.extra(
            where=["(jobs_job.owner_id, jobs_job.key) > (%s, %s)"], params=[int(owner_id), key]
        )
    return jobs.order_by("owner_id", "key")


def find_job(access: Access, job_id: int) -> Job:
    """Return a job that the caller sees, with its owner and target; raise NotFound if none."""
    found: Job = find(JOBS, job_id, by=access)
    return found


def found_to_change(request: HttpRequest, job_id: int) -> Job:
    """Return a job that the caller may change, if it is the version that If-Match names.

    The verb compares the version again: its statement names it.
    """
    job = find_job(access := caller(request), job_id)
    refuse_without_scope(caller(request), Scope.ADMIN, job.owner_id)
    refuse_stale(request, etag_of_job(job, access))
    return job


def etag_of_job(job: Job, access: Access) -> str:
    """Return the ETag of a job as this caller sees it; a trigger writes `changed_at`."""
    target = job.target.name if job.target else ""
    seen = access.sees_arguments(job.owner_id)
    return etag_of(job.pk, job.changed_at.timestamp(), job.owner.slug, target, seen)
