"""The verbs of jobs: run now, pause and resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models.functions import Now
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit import html
from jobs.admin.kit.verbs import Act, RequiredUntilForm, Verb, always
from jobs.models import IdempotencyKey, Job, Run
from jobs.recurring.pause import pause_jobs
from jobs.runs.submission import run_job_once


def _run_now(keys: Sequence[int], act: Act) -> int:
    jobs = Job.objects.select_related("owner").filter(pk__in=keys, enabled=True)
    given: dict[str, Any] = {"actor": act.actor, "reason": act.reason}
    runs = [run_job_once(job, idempotency_key=act.key_of(job), **given) for job in jobs]
    return sum(run is not None for run in runs)


def _link_to_run(job: Job, act: Act) -> Any:
    claimed = IdempotencyKey.objects.get(owner=job.owner, key=act.key_of(job))
    run = Run.objects.get(id=str(claimed.run_id))
    return format_html("{} {}", _("Submitted as run"), html.link(run))


def _pause(keys: Sequence[int], act: Act) -> int:
    """Pause jobs until the time in the form; the form of a resume has none, which ends a pause."""
    return pause_jobs(keys, until=act.data.get("until"), actor=act.actor, reason=act.reason)


RUN_NOW = Verb(
    name="run_now",
    label=_("Run now"),
    permission="jobs.run_job",
    applies=lambda jobs: jobs.filter(enabled=True),
    act=_run_now,
    done=_("submitted"),
    refused=always(_("This job is not enabled, or this form has run it already.")),
    warning=_("One run is submitted. The owner's limits and the job's lock apply to it."),
    message=_link_to_run,
)
PAUSE = Verb(
    name="pause",
    label=_("Pause"),
    permission="jobs.pause_job",
    act=_pause,
    done=_("paused"),
    refused=always(_("This job cannot be paused.")),
    warning=_("Its schedule makes no runs until then. It can still be run by hand."),
    form=RequiredUntilForm,
)
RESUME = Verb(
    name="resume",
    label=_("Resume"),
    permission="jobs.pause_job",
    applies=lambda jobs: jobs.filter(paused_until__gt=Now()),
    act=_pause,
    done=_("resumed"),
    refused=always(_("This job is not paused.")),
)
