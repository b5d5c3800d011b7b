"""Starting runs outside their windows: the verbs, and a run's page on who used them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit import html
from jobs.admin.kit.verbs import Act, ReasonForm, Verb, always
from jobs.core.states import WAITING
from jobs.models import AuditEntry, Run, Submission, WindowPolicy
from jobs.runs.override import override_submission, override_windows


class RequiredReasonForm(ReasonForm):
    """A reason, which is required."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = True


def _waiting(runs: QuerySet[Any]) -> QuerySet[Any]:
    """Return the waiting runs that a calendar may delay, or that require one."""
    waiting = runs.filter(state__in=sorted(WAITING)).exclude(window_policy=WindowPolicy.OVERRIDDEN)
    required = Q(window_policy=WindowPolicy.REQUIRED)
    return waiting.filter(required | Q(owner__calendar_version__gt=0))


def _override(keys: Sequence[UUID], act: Act) -> int:
    return override_windows(keys, actor=act.actor, reason=act.reason)


def _with_waiting_runs(submissions: QuerySet[Any]) -> QuerySet[Any]:
    return submissions.filter(Exists(_waiting(Run.objects.filter(submission=OuterRef("pk")))))


def _override_submissions(keys: Sequence[int], act: Act) -> int:
    submissions = Submission.objects.select_related("owner").filter(pk__in=keys)
    return sum(
        override_submission(submission, actor=act.actor, reason=act.reason) > 0
        for submission in submissions
    )


OVERRIDE = Verb(
    name="override",
    label=lazy("Override windows"),
    permission="jobs.override_window",
    applies=_waiting,
    act=_override,
    done=lazy("let start outside their windows"),
    refused=always(lazy("This run does not wait, or may start outside its windows already.")),
    warning=lazy(
        "They start despite calendars and freezes. Limits of owners and locks still apply."
    ),
    form=RequiredReasonForm,
)
OVERRIDE_SUBMISSION = replace(
    OVERRIDE,
    applies=_with_waiting_runs,
    act=_override_submissions,
    refused=always(lazy("No run of this submission waits for a window.")),
    warning=lazy(
        "Every waiting run of it starts despite calendars and freezes. "
        "Limits of owners and locks still apply."
    ),
)


def overridden_in_words(run: Run) -> Any:
    """Return who let a run start outside its windows, when and why; empty if nobody did."""
    if run.window_policy != WindowPolicy.OVERRIDDEN:
        return ""
    entries = AuditEntry.objects.filter(
        object_type="run", object_id=str(run.pk), action="override windows"
    )
    entry = entries.order_by("-pk").first()
    if entry is None:
        return _("windows overridden")
    actor = _("windows overridden by %(who)s") % {"who": entry.actor_name}
    return format_html("{} {}: {}", actor, html.moment(entry.at), entry.reason)
