"""The verb that backfills a job: a range is typed, then counted, then confirmed."""

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
from jobs.admin.kit.widgets import date_and_time
from jobs.core.errors import OptionError, ScheduleError
from jobs.models import Backfill, HistoryPolicy, IdempotencyKey, Job, ScheduleKind
from jobs.recurring.backfill import backfill, count_backfill
from jobs.runs import idempotency


class BackfillForm(ReasonForm):
    """A range of the past, and a reason. Valid only after it has shown the number of runs."""

    job: ClassVar[Job]
    data: Any
    announcement: Any = ""

    start = forms.SplitDateTimeField(label=_("From"), widget=date_and_time(step="1"))
    end = forms.SplitDateTimeField(label=_("Until"), widget=date_and_time(step="1"))
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
            self._require_shown(f"{start.isoformat()} {end.isoformat()} {count}", count)
        return cleaned

    def _require_shown(self, facts: str, count: int) -> None:
        """Announce the count, unless the form before showed this range with this count.

        A changed count may mean a changed schedule, so it is confirmed anew.
        """
        name = self.add_prefix("counted")
        if self.data.get(name) != facts:
            self.data = {**self.data.dict(), name: facts}
            text = ngettext("This makes %s run.", "This makes %s runs.", count) % f"{count:,}"
            self.announcement = text + gettext(" Confirm it with the same button.")

    def is_valid(self) -> bool:
        return super().is_valid() and not self.announcement


def _backfill(keys: Sequence[int], act: Act) -> int:
    """Begin a backfill of one job; 0 if the same form has begun it before."""
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
    claimed = IdempotencyKey.objects.get(owner=job.owner, key=act.key_of(job))
    begun = Backfill.objects.get(submission=claimed.submission_id)
    return format_html("{} {}", _("Begun:"), html.link(begun))


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
    refused=always(_("This job has no schedule, no history or is off; or this form was used.")),
    warning=_("Its due times in a past range are run again, by its present schedule."),
    form=BackfillForm,
    form_of=lambda job: type("BackfillFormOfJob", (BackfillForm,), {"job": job}),
    is_for_many=False,
    message=_link,
)
