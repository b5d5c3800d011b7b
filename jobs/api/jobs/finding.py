"""Find jobs for a caller: one by its id, many by filters that indexes answer."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from jobs.actions.texts import Name, Slug, TaskName
from jobs.api.kit.callers import caller, refuse_other_scope
from jobs.api.kit.etags import etag_of, refuse_stale
from jobs.api.kit.pages import ID_LIMIT
from jobs.api.kit.problems import not_found
from jobs.core import barrier
from jobs.definitions.single import read_job
from jobs.models import Job, Owner, ScheduleKind, Scope, Target
from jobs.models.access import Access
from jobs.runs.reads.search import search_beginnings

NAMED: Final = 100
"""Most rows that the name of a target stands for: one of each owner."""


class JobQuery(Schema):
    """The filters of a list of jobs; a job must match all of them."""

    owner: Slug | None = None
    key: Name | None = Field(None, description="The whole key.")
    search: Name | None = Field(
        None, description="The beginning of the key or the name; finds at most 500 of each."
    )
    task: TaskName | None = None
    schedule: ScheduleKind | None = None
    target: Name | None = Field(None, description="The whole name of a target.")
    enabled: bool | None = None
    paused: bool | None = Field(None, description="True: only jobs that are paused now.")


Filters = Annotated[JobQuery, Query()]


def listed_jobs(access: Access, wanted: JobQuery, *, after: str) -> QuerySet[Job]:
    """Return the jobs of a filter that the caller sees, by owner and key, after a place."""
    jobs: Any = access.narrowed(Job.objects.select_related("owner", "target").defer("payload"))
    if wanted.owner is not None:
        owners = access.narrowed(Owner.objects.filter(slug=wanted.owner), path="pk")
        jobs = jobs.filter(owner_id__in=list(owners.values_list("pk", flat=True)))
    if wanted.target is not None:
        targets = access.narrowed(Target.objects.filter(name=wanted.target))
        ids = targets.order_by("pk").values_list("pk", flat=True)[:NAMED]
        jobs = jobs.filter(target_id__in=list(ids))
    for name in ("key", "task", "schedule", "enabled"):
        if (value := getattr(wanted, name)) is not None:
            jobs = jobs.filter(**{name: value})
    if wanted.paused is not None:
        paused = {"paused_until__gt": Now()}
        jobs = jobs.filter(**paused) if wanted.paused else jobs.exclude(**paused)
    if wanted.search is not None:
        # Behind the barrier PostgreSQL would not use the indexes of beginnings. These rows are
        # narrowed already, and the page's rows are read behind it.
        with barrier.lifted():
            jobs = search_beginnings(jobs, wanted.search, exact="key", any_case="name")
    if after:
        owner_id, _, key = after.partition(":")
        jobs = jobs.extra(
            where=["(jobs_job.owner_id, jobs_job.key) > (%s, %s)"], params=[int(owner_id), key]
        )
    return jobs.order_by("owner_id", "key")


def find_job(access: Access, job_id: int) -> Job:
    """Return a job that the caller sees, with its owner and target; raise Problem if none."""
    owner_ids = None if access.sees_all else access.owner_ids()
    job = read_job(job_id, owner_ids=owner_ids) if job_id <= ID_LIMIT else None
    if job is None:
        raise not_found()
    return job


def found_to_change(request: HttpRequest, job_id: int) -> Job:
    """Return a job that the caller may change, if it is the version that If-Match names.

    The verb compares the version again: its statement names it.
    """
    job = find_job(access := caller(request), job_id)
    refuse_other_scope(request, Scope.ADMIN, job.owner_id)
    refuse_stale(request, etag_of_job(job, access), is_required=True)
    return job


def etag_of_job(job: Job, access: Access) -> str:
    """Return the ETag of a job as this caller sees it; a trigger writes `changed_at`."""
    target = job.target.name if job.target else ""
    seen = access.sees_arguments(job.owner_id)
    return etag_of(job.pk, job.changed_at.timestamp(), job.owner.slug, target, seen)
