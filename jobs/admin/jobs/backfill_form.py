"""Backfill a job: a range is asked for, then counted, then confirmed with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit import html
from jobs.admin.kit.verbs import Act, ReasonForm, Verb, always
from jobs.core.errors import OptionError, ScheduleError
from jobs.models import Backfill, HistoryPolicy, IdempotencyKey, Job, ScheduleKind
from jobs.recurring.backfill import backfill, count_backfill
from jobs.runs import idempotency


def _moment(label: Any) -> forms.SplitDateTimeField:
    return forms.SplitDateTimeField(
        label=label,
        widget=forms.SplitDateTimeWidget(
            date_attrs={"type": "date"},
            time_attrs={"type": "time", "step": "1"},
            date_format="%Y-%m-%d",
            time_format="%H:%M:%S",
        ),
    )


class BackfillForm(ReasonForm):
    """A range of the past, and why. Right only when its count has been shown before."""

    job: ClassVar[Job]
    data: Any
    announcement: Any = ""

    start = _moment(_("From"))
    end = _moment(_("Until"))
    counted = forms.CharField(required=False, widget=forms.HiddenInput)
    field_order = ("start", "end", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name()
        self.fields["start"].help_text = gettext("In your zone, %s.") % zone
        self.fields["end"].help_text = gettext("Not included; not in the future.")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        start, end = cleaned.get("start"), cleaned.get("end")
        if start is None or end is None:
            return cleaned
        try:
            count = count_backfill(self.job, start, end)
        except OptionError as error:
            self.add_error(error.option if error.option in self.fields else None, error.problem)
        except ScheduleError as error:
            self.add_error(None, str(error))
        else:
            self._hold_to(f"{start.isoformat()} {end.isoformat()} {count}", count)
        return cleaned

    def _hold_to(self, facts: str, count: int) -> None:
        """Ask again unless the very same was shown: another count may mean another schedule."""
        if self.data.get(self.add_prefix("counted")) == facts:
            return
        self.data = {**self.data.dict(), self.add_prefix("counted"): facts}
        self.announcement = (
            ngettext("This makes %s run.", "This makes %s runs.", count) % f"{count:,}"
        ) + gettext(" Confirm it with the same button.")

    def is_valid(self) -> bool:
        return super().is_valid() and not self.announcement


def _form_of(job: Job) -> type[BackfillForm]:
    return type("BackfillFormOfJob", (BackfillForm,), {"job": job})


def _backfill(keys: Sequence[int], act: Act) -> int:
    """Begin a backfill of one job; 0 when this very form has done so before."""
    [key] = keys
    with transaction.atomic():
        job = Job.objects.select_related("owner").get(pk=key)
        start, end = act.data["start"], act.data["end"]
        asked = [start.isoformat().encode(), end.isoformat().encode()]
        claim = idempotency.claim(job.owner, act.key_of(job), job.task, asked, is_bulk=True)
        if claim.submission_id is not None:
            return 0
        made = backfill(job, start, end, actor=act.actor, reason=act.reason)
        claim.store(submission_id=made.submission_id)
    return 1


def _link(job: Job, act: Act) -> Any:
    kept = IdempotencyKey.objects.get(owner=job.owner, key=act.key_of(job))
    made = Backfill.objects.get(submission=kept.submission_id)
    return format_html("{} {}", _("Begun:"), html.link(made))


def _can_be_backfilled(jobs: QuerySet[Any]) -> QuerySet[Any]:
    with_history = jobs.filter(enabled=True, history_policy=HistoryPolicy.FULL)
    return with_history.exclude(schedule=ScheduleKind.MANUAL)


BACKFILL = Verb(
    name="backfill",
    label=_("Backfill"),
    permission="jobs.run_job",
    applies=_can_be_backfilled,
    act=_backfill,
    done=_("backfilled"),
    refused=always(_("This job has no schedule, no history or is off; or it was begun already.")),
    warning=_("Its due times in a range of the past are run again, by its schedule of today."),
    form=BackfillForm,
    form_of=_form_of,
    is_for_many=False,
    message=_link,
)
