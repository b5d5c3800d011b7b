"""Retry all failed runs of a group: their number and a question, then the verb and a report."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.actions.filters.runs import FailureFilter
from jobs.core import barrier
from jobs.core.counting import capped_count
from jobs.core.language import number
from jobs.models import Run, Scope
from jobs.models.run import RunQuerySet
from jobs.pages.kit.acts import ReasonForm, done, failed
from jobs.pages.kit.errors import forbidden, not_found
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit, page
from jobs.runs import bulk


class RetryForm(ReasonForm):
    """A reason, and the last run that the page counted: later failures are not retried unseen."""

    until = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fields["reason"].required = True


@page("failures", permission="jobs.view_run", methods=("GET", "POST"))
def retry_failures(visit: Visit) -> HttpResponse:
    """Ask for a reason, then queue the failed runs of one task and error again."""
    access = visit.access
    if not access.permits("jobs.retry_run") or not access.has_somewhere(Scope.OPERATE):
        raise forbidden()
    chosen = FilterForm(visit, FailureFilter)
    if not chosen.is_valid() or not chosen.is_set:
        raise not_found()
    back = f"{reverse('jobs:failures')}?{chosen.query}"
    rows = chosen.narrow(access.narrowed(Run.objects.all(), scope=Scope.OPERATE))
    form = RetryForm(visit.request.POST or None, initial={"until": _last(rows)})
    if visit.request.method == "POST" and form.is_valid():
        return _retry(visit, rows.filter(pk__lte=form.cleaned_data["until"]), form, back)
    return visit.show(
        "jobs/pages/failures/retry.html",
        form=form,
        chosen=chosen.cleaned_data,
        count=capped_count(rows),
        most=bulk.MOST,
        back=back,
    )


def _last(rows: RunQuerySet) -> UUID | None:
    return rows.order_by("-pk").values_list("pk", flat=True).first()


def _retry(visit: Visit, rows: RunQuerySet, form: RetryForm, back: str) -> HttpResponseRedirect:
    found = bulk.find_reopenable(rows)
    if not found:
        return failed(visit, _("No run of this group is failed any more."), to=back)
    with barrier.lifted():
        moved = bulk.retry_found(
            found, actor=visit.access.actor, reason=form.cleaned_data["reason"]
        )
    text = ngettext(
        "%(count)s run is queued again.", "%(count)s runs are queued again.", moved.moved
    ) % {"count": number(moved.moved)}
    if moved.left or len(found) == bulk.MOST:
        left = _("The time or the limit was reached: retry the group again for the rest.")
        text = f"{text} {left}"
    return done(visit, text, to=back)
