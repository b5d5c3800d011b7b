"""Cancel a submission, or retry its failed runs."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.core import barrier
from jobs.core.states import State
from jobs.models import Scope
from jobs.pages.kit.acts import ReasonForm, done, failed
from jobs.pages.kit.numbers import number
from jobs.pages.kit.visit import Visit, page
from jobs.pages.submissions.one import find_submission
from jobs.runs.bulk import CANCELLABLE
from jobs.runs.manual_retry import reopen_failed

ASK: Final = "jobs/pages/submissions/ask.html"


@page("submissions", permission="jobs.cancel_submission", methods=("GET", "POST"))
def submission_cancel(visit: Visit, key: int) -> HttpResponse:
    """Cancel all runs of a submission that have not ended."""
    found = find_submission(visit, key)
    visit.refuse_unless("jobs.cancel_submission", Scope.OPERATE, found.owner_id)
    back = reverse("jobs:submission", args=[found.pk])
    progress = found.progress
    count = sum(progress[state] for state in CANCELLABLE)
    refusal = _("Every run of this submission has ended, or was asked to stop.")
    if not count:
        return failed(visit, refusal, to=back)
    form = ReasonForm(visit.request.POST or None)
    if visit.request.method == "POST" and form.is_valid():
        with barrier.lifted():
            moved = found.cancel(actor=visit.access.actor, reason=form.cleaned_data["reason"])
        if not moved:
            return failed(visit, refusal, to=back)
        facts = {"ended": number(moved.cancelled), "stopping": number(moved.stopping)}
        text = _("%(ended)s of its runs cancelled, %(stopping)s asked to stop.") % facts
        return done(visit, text, to=back)
    warning = _("Waiting runs never start. Runs that a worker has started are asked to stop.")
    return visit.show(
        ASK,
        form=form,
        submission=found,
        back=back,
        count=count,
        verb=_("Cancel the submission"),
        warning=warning,
        is_bad=True,
    )


@page("submissions", permission="jobs.retry_run", methods=("GET", "POST"))
def submission_retry(visit: Visit, key: int) -> HttpResponse:
    """Queue the failed runs of a submission again."""
    found = find_submission(visit, key)
    visit.refuse_unless("jobs.retry_run", Scope.OPERATE, found.owner_id)
    back = reverse("jobs:submission", args=[found.pk])
    count = found.progress[State.FAILED]
    if not count:
        return failed(visit, _("No run of this submission has failed."), to=back)
    form = ReasonForm(visit.request.POST or None)
    if visit.request.method == "POST" and form.is_valid():
        with barrier.lifted():
            moved, left = reopen_failed(
                found, actor=visit.access.actor, reason=form.cleaned_data["reason"]
            )
        text = _("%s of its runs queued again.") % number(moved)
        if left:
            text = f"{text} {_('%s are left: retry them once more.') % number(left)}"
        return done(visit, text, to=back)
    warning = _("Each failed run is queued again with a fresh set of attempts.")
    return visit.show(
        ASK,
        form=form,
        submission=found,
        back=back,
        count=count,
        verb=_("Retry the failed runs"),
        warning=warning,
    )
