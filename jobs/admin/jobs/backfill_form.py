"""The verb that backfills a job: a range is typed, then counted, then confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit import html
from jobs.admin.kit.verbs import Act, ReasonForm, Verb, always
from jobs.models import Backfill, IdempotencyKey, Job
from jobs.pages.jobs.backfill_form import BackfillFields
from jobs.recurring.backfill import backfill_once, that_can_be_backfilled


class BackfillForm(BackfillFields, ReasonForm):
    """A range of the past, and a reason."""


def _backfill(keys: Sequence[int], act: Act) -> int:
    """Begin a backfill of one job; 0 if the same form has begun it before."""
    [key] = keys
    job = Job.objects.select_related("owner").get(pk=key)
    _, is_new = backfill_once(
        job,
        act.data["start"],
        act.data["end"],
        idempotency_key=act.key_of(job),
        actor=act.actor,
        reason=act.reason,
    )
    return int(is_new)


def _link(job: Job, act: Act) -> Any:
    claimed = IdempotencyKey.objects.get(owner=job.owner, key=act.key_of(job))
    begun = Backfill.objects.get(submission=claimed.submission_id)
    return format_html("{} {}", _("Begun:"), html.link(begun))


BACKFILL = Verb(
    name="backfill",
    label=_("Backfill"),
    permission="jobs.run_job",
    applies=that_can_be_backfilled,
    act=_backfill,
    done=_("backfilled"),
    refused=always(_("This job has no schedule, no history or is off; or this form was used.")),
    warning=_("Its due times in a past range are run again, by its present schedule."),
    form=BackfillForm,
    form_of=lambda job: type("BackfillFormOfJob", (BackfillForm,), {"job": job}),
    is_for_many=False,
    message=_link,
)
