"""The list of jobs: found by key, task, schedule, state and health."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Job, ScheduleKind, Scope
from jobs.pages.jobs.lines import lines_of
from jobs.pages.kit import nav
from jobs.pages.kit.lists import FilterForm, newest_first
from jobs.pages.kit.visit import Visit, page
from jobs.recurring.health import HEALTHS, Owners, by_health
from jobs.runs.reads.search import search_beginnings

_HEALTHS = {
    "late": _("late"),
    "failing": _("failing"),
    "paused": _("paused"),
    "broken": _("broken"),
}


class JobFilter(FilterForm):
    """The filters of the list of jobs."""

    search = forms.CharField(label=_("Key or name begins with"), max_length=200)
    task = forms.CharField(label=_("Task"), max_length=255)
    schedule = forms.ChoiceField(
        label=_("Schedule"), choices=[("", _("any")), *ScheduleKind.choices]
    )
    state = forms.ChoiceField(
        label=_("State"),
        choices=[("", _("any")), ("enabled", _("enabled")), ("disabled", _("disabled"))],
    )
    health = forms.ChoiceField(
        label=_("Health"),
        choices=[("", _("any")), *((health, _HEALTHS[health]) for health in HEALTHS)],
    )


@page("jobs", permission="jobs.view_job")
def jobs(visit: Visit) -> HttpResponse:
    """Show the jobs that a filter finds, the newest first."""
    form = JobFilter(visit)
    rows: Any = visit.rows(Job.objects.select_related("owner", "target").defer("payload"))
    is_complete = True
    if not form.is_valid():
        rows = rows.none()
    else:
        rows, is_complete = _found(visit, rows, form.cleaned_data)
    found = newest_first(visit, rows, of="jobs")
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
        is_complete=is_complete,
        admin_url=nav.admin_address(visit.request.user, "job_changelist"),
        add_url=nav.admin_address(visit.request.user, "job_add")
        if visit.access.permits("jobs.add_job") and visit.access.has_somewhere(Scope.ADMIN)
        else None,
    )


def _found(visit: Visit, rows: Any, wanted: dict[str, Any]) -> tuple[Any, bool]:
    """Narrow jobs to those that the filter wants; say also whether these are known to be all."""
    for column in ("task", "schedule"):
        if wanted[column]:
            rows = rows.filter(**{column: wanted[column]})
    if wanted["state"]:
        rows = rows.filter(enabled=wanted["state"] == "enabled")
    # These rows are narrowed already. Behind the barrier PostgreSQL would not use the indexes of
    # beginnings, and the engine's tables cannot be read.
    with barrier.lifted():
        rows = search_beginnings(rows, wanted["search"], exact="key", any_case="name")
        if not wanted["health"]:
            return rows, True
        return by_health(rows, wanted["health"], _owners(visit), now=now())


def _owners(visit: Visit) -> Owners:
    if visit.owner is not None:
        return [visit.owner.pk]
    return None if visit.access.sees_all else visit.access.owner_ids()
