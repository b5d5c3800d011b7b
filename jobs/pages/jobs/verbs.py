"""The verbs of one job: run now, pause, resume, backfill. Each asks before it acts."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.core import barrier
from jobs.core.errors import FairshiftError
from jobs.core.sql import now
from jobs.models import Job, Scope
from jobs.owners.caps import refuse_more_runs
from jobs.pages.jobs.backfill_form import BackfillFields
from jobs.pages.jobs.lines import find_job
from jobs.pages.kit.acts import ReasonForm, done, failed
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.numbers import number
from jobs.pages.kit.until import RequiredUntilFields
from jobs.pages.kit.visit import Visit, page
from jobs.recurring import timetable
from jobs.recurring.backfill import backfill_once, count_backfill, that_can_be_backfilled
from jobs.recurring.pause import pause_jobs
from jobs.runs.submission import run_job_by_key


class OnceForm(ReasonForm):
    """A reason, and a key by which a form that is sent twice acts once."""

    once = forms.CharField(
        required=False, max_length=64, initial=secrets.token_urlsafe, widget=forms.HiddenInput
    )

    def key_for(self, job: Job) -> str:
        """Return the idempotency key of this form and a job."""
        return f"page:{self.cleaned_data['once'] or secrets.token_urlsafe()}:{job.pk}"


class PauseForm(RequiredUntilFields, ReasonForm):
    """An end, and a reason."""


class BackfillForm(BackfillFields, OnceForm):
    """A range of the past, and a reason."""


def _run_now(visit: Visit, job: Job, form: Any) -> Any:
    refuse_more_runs(job.owner_id, adding=1)
    run, is_new = run_job_by_key(
        job,
        idempotency_key=form.key_for(job),
        actor=visit.access.actor,
        reason=form.cleaned_data["reason"],
    )
    said = _("Submitted as run") if is_new else _("This form has submitted it before, as run")
    url = visit.address("run", run.id)
    return format_html('{} <a href="{}">{}</a>', said, url, run.id) if url else f"{said} {run.id}"


def _pause(visit: Visit, job: Job, form: Any) -> Any:
    """Pause a job until the time in the form; the form of a resume has none, which ends it."""
    until, reason = form.cleaned_data.get("until"), form.cleaned_data["reason"]
    pause_jobs([job.pk], until=until, actor=visit.access.actor, reason=reason)
    return _("%s is paused.") % job if until else _("%s is resumed.") % job


def _backfill(visit: Visit, job: Job, form: Any) -> Any:
    start, end = form.cleaned_data["start"], form.cleaned_data["end"]
    refuse_more_runs(job.owner_id, adding=count_backfill(job, start, end))
    begun, _is_new = backfill_once(
        job,
        start,
        end,
        idempotency_key=form.key_for(job),
        actor=visit.access.actor,
        reason=form.cleaned_data["reason"],
    )
    return _("The backfill has begun: %s runs are being made.") % number(begun.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVerb:
    """A verb of a job: its texts, the permission that it needs, its form, and its function."""

    label: Any
    warning: Any
    permission: str
    scope: Scope
    applies: Callable[[Job], bool]
    refused: Any
    form: type[ReasonForm]
    act: Callable[[Visit, Job, Any], Any]
    """The function that acts. It returns the message for the visitor."""


VERBS: Final = {
    "run-now": JobVerb(
        label=lazy("Run now"),
        warning=lazy("One run is submitted. The owner's limits and the job's lock apply to it."),
        permission="jobs.run_job",
        scope=Scope.SUBMIT,
        applies=lambda job: job.enabled,
        refused=lazy("This job is not enabled."),
        form=OnceForm,
        act=_run_now,
    ),
    "pause": JobVerb(
        label=lazy("Pause"),
        warning=lazy("Its schedule makes no runs until then. It can still be run by hand."),
        permission="jobs.pause_job",
        scope=Scope.OPERATE,
        applies=lambda _job: True,
        refused="",
        form=PauseForm,
        act=_pause,
    ),
    "resume": JobVerb(
        label=lazy("Resume"),
        warning=lazy("Its schedule makes runs again. What was due in the pause is not run."),
        permission="jobs.pause_job",
        scope=Scope.OPERATE,
        applies=lambda job: timetable.is_paused(job, now=now()),
        refused=lazy("This job is not paused."),
        form=ReasonForm,
        act=_pause,
    ),
    "backfill": JobVerb(
        label=lazy("Backfill"),
        warning=lazy("Its due times in a past range are run again, by its present schedule."),
        permission="jobs.run_job",
        scope=Scope.OPERATE,
        applies=lambda job: that_can_be_backfilled(Job.objects.filter(pk=job.pk)).exists(),
        refused=lazy("This job has no schedule or no history, or it is not enabled."),
        form=BackfillForm,
        act=_backfill,
    ),
}


def verbs_for(visit: Visit, job: Job) -> list[tuple[Any, str]]:
    """Return the label and the address of each verb that the visitor can use on a job now."""
    return [
        (verb.label, reverse("jobs:job_verb", args=[job.pk, name]))
        for name, verb in VERBS.items()
        if visit.may(verb.permission, verb.scope, job.owner_id) and verb.applies(job)
    ]


@page("jobs", permission="jobs.view_job", methods=("GET", "POST"))
def job_verb(visit: Visit, key: int, name: str) -> HttpResponse:
    """Ask before a verb of a job; act after a confirmed POST."""
    verb = VERBS.get(name)
    job = find_job(visit, key)
    if verb is None:
        raise not_found()
    visit.refuse_unless(verb.permission, verb.scope, job.owner_id)
    back = visit.address("job", job.pk) or ""
    with barrier.lifted():
        if not verb.applies(job):
            return failed(visit, verb.refused, to=back)
        form = type(verb.form.__name__, (verb.form,), {"job": job})(visit.request.POST or None)
        if visit.request.method == "POST" and form.is_valid():
            try:
                return done(visit, verb.act(visit, job, form), to=back)
            except FairshiftError as error:
                return failed(visit, str(error), to=back)
    return visit.show("jobs/pages/jobs/confirm.html", job=job, verb=verb, form=form, back=back)
