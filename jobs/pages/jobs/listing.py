"""The list of jobs: found by key, task, schedule, state and health."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from jobs.actions.filters.jobs import JobFilter
from jobs.core.sql import now
from jobs.models import Job, Scope
from jobs.pages.jobs.lines import lines_of
from jobs.pages.kit.lists import FilterForm, newest_first
from jobs.pages.kit.visit import Visit, page


@page("jobs", permission="jobs.view_job")
def jobs(visit: Visit) -> HttpResponse:
    """Show the jobs that a filter finds, the newest first."""
    form = FilterForm(visit, JobFilter)
    rows: Any = visit.rows(Job.objects.select_related("owner", "target").defer("payload"))
    found = newest_first(visit, form.narrow(rows), of="jobs")
    runnable = {
        job.pk
        for job in found.rows
        if job.enabled and visit.may("jobs.run_job", Scope.SUBMIT, job.owner_id)
    }
    return visit.show(
        "jobs/pages/jobs/list.html",
        live="jobs/pages/jobs/list_live.html",
        form=form,
        list=found,
        lines=lines_of(found.rows, now=now()),
        runnable=runnable,
        is_complete=not form.is_valid() or form.wanted.is_complete,
        admin_url=visit.admin_address("job_changelist"),
        add_url=visit.admin_address("job_add")
        if visit.access.permits("jobs.add_job") and visit.access.has_somewhere(Scope.ADMIN)
        else None,
    )
