"""What an operator does to jobs: run one now, pause and resume them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit import html
from jobs.admin.kit.verbs import Act, CertainUntilForm, Verb, always
from jobs.core.crypto import open_bytes
from jobs.models import AuditEntry, IdempotencyKey, Job, Run
from jobs.recurring.misfire import record_pauses
from jobs.runs import idempotency
from jobs.runs.submission import run_job


def _run_now(keys: Sequence[int], act: Act) -> int:
    jobs = Job.objects.select_related("owner").filter(pk__in=keys, enabled=True)
    return sum(_run_once(job, act) is not None for job in jobs)


def _run_once(job: Job, act: Act) -> Run | None:
    """Run a job now; None when this very form has done so before."""
    with transaction.atomic():
        payload = open_bytes(job.payload, key=job.payload_key)
        claim = idempotency.claim(job.owner, act.key_of(job), job.task, [payload])
        if claim.run_id is not None:
            return None
        run = run_job(job)
        claim.store(run_id=run.id)
        AuditEntry.write("run now", on=job, actor=act.actor, reason=act.reason, run=str(run.id))
        return run


def _link_to_run(job: Job, act: Act) -> Any:
    made = IdempotencyKey.objects.get(owner=job.owner, key=act.key_of(job))
    run = Run.objects.get(id=str(made.run_id))
    return format_html("{} {}", _("Submitted as run"), html.link(run))


def _pause(keys: Sequence[int], act: Act) -> int:
    return _set_pause(keys, act, action="pause", until=act.data["until"])


def _resume(keys: Sequence[int], act: Act) -> int:
    return _set_pause(keys, act, action="resume", until=None)


def _set_pause(keys: Sequence[int], act: Act, *, action: str, until: datetime | None) -> int:
    with transaction.atomic():
        rows = Job.objects.select_related("owner").select_for_update(of=("self",))
        jobs = list(rows.filter(pk__in=keys).order_by("pk"))
        locked = [job.pk for job in jobs]
        # Before: the pause that is over. After: the one that ends here.
        record_pauses(locked)
        Job.objects.filter(pk__in=locked).update(paused_until=until, changed_at=Now())
        record_pauses(locked)
        AuditEntry.write_all(
            action,
            on=jobs,
            actor=act.actor,
            reason=act.reason,
            until=until and until.isoformat(),
        )
    return len(jobs)


RUN_NOW = Verb(
    name="run_now",
    label=_("Run now"),
    permission="jobs.run_job",
    applies=lambda jobs: jobs.filter(enabled=True),
    act=_run_now,
    done=_("submitted"),
    refused=always(_("This job is not enabled, or this form has run it already.")),
    warning=_("One run is submitted; it obeys the owner's limits and the job's lock."),
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
    form=CertainUntilForm,
)


def _paused(jobs: QuerySet[Any]) -> QuerySet[Any]:
    return jobs.filter(paused_until__gt=Now())


RESUME = Verb(
    name="resume",
    label=_("Resume"),
    permission="jobs.pause_job",
    applies=_paused,
    act=_resume,
    done=_("resumed"),
    refused=always(_("This job is not paused.")),
)
