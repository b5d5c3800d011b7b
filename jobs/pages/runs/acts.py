"""Cancel and retry of one run."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.catalog.redaction import hidden_arguments
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError, StateConflict
from jobs.core.states import REOPENABLE
from jobs.core.strict_json import JsonError, parse
from jobs.models import Run, Scope
from jobs.pages.kit.acts import ReasonForm, done, failed
from jobs.pages.kit.visit import Visit, page
from jobs.pages.runs.one import find_run
from jobs.runs.bulk import CANCELLABLE
from jobs.runs.manual_retry import retry_run
from jobs.runs.reads.choices import word_of
from jobs.runs.reads.story import readable


class RetryForm(ReasonForm):
    """The arguments of the new attempts, and a reason."""

    arguments = forms.CharField(
        label=lazy("Arguments"),
        required=False,
        help_text=lazy(
            "All arguments by name, as a JSON object. Unchanged: the run keeps its arguments."
        ),
        widget=forms.Textarea(attrs={"rows": 8, "class": "mono", "spellcheck": "false"}),
    )
    field_order = ("arguments", "reason")

    def clean_arguments(self) -> dict[str, Any] | None:
        """Return the edited arguments; None if they were not edited."""
        text: str = self.cleaned_data["arguments"]
        if not text.strip() or text.split() == str(self.initial.get("arguments", "")).split():
            return None
        try:
            value = parse(text.encode(), max_depth=setting("API_MAX_DEPTH"))
        except JsonError as error:
            where = f"{error.field}: " if error.field else ""
            raise forms.ValidationError(f"{where}{error.problem}") from None
        if not isinstance(value, dict):
            raise forms.ValidationError(_("write a JSON object of names and values"))
        return value


@page("runs", permission="jobs.cancel_run", methods=("GET", "POST"))
def run_cancel(visit: Visit, run_id: UUID) -> HttpResponse:
    """Cancel one run."""
    found = find_run(visit, run_id)
    visit.refuse_unless("jobs.cancel_run", Scope.OPERATE, found.owner_id)
    back = reverse("jobs:run", args=[found.pk])
    refusal = _("This run is %s and cannot be cancelled.") % word_of(found.state)
    if found.state not in CANCELLABLE:
        return failed(visit, refusal, to=back)
    form = ReasonForm(visit.request.POST or None)
    if visit.request.method == "POST" and form.is_valid():
        with barrier.lifted():
            moved = found.cancel(actor=visit.access.actor, reason=form.cleaned_data["reason"])
        if not moved:
            return failed(visit, refusal, to=back)
        return done(visit, _("This run is %s now.") % word_of(found.state), to=back)
    warning = _("A waiting run never starts. One that a worker has started is asked to stop.")
    verb = _("Cancel the run")
    return _asked(visit, found, form, verb=verb, warning=warning, back=back, is_bad=True)


@page("runs", permission="jobs.retry_run", methods=("GET", "POST"))
def run_retry(visit: Visit, run_id: UUID) -> HttpResponse:
    """Retry one run, with its arguments or with others."""
    found = find_run(visit, run_id)
    visit.refuse_unless("jobs.retry_run", Scope.OPERATE, found.owner_id)
    back = reverse("jobs:run", args=[found.pk])
    if found.state not in REOPENABLE:
        return failed(
            visit, _("This run is %s and cannot be retried.") % word_of(found.state), to=back
        )
    form = _form(visit, found)
    if visit.request.method == "POST" and form.is_valid():
        try:
            with barrier.lifted():
                retry_run(
                    found,
                    arguments=form.cleaned_data.get("arguments"),
                    actor=visit.access.actor,
                    reason=form.cleaned_data["reason"],
                )
        except StateConflict as error:
            return failed(visit, str(error), to=back)
        except FairshiftError as error:
            form.add_error("arguments" if "arguments" in form.fields else None, str(error))
        else:
            return done(visit, _("It is queued again with a fresh set of attempts."), to=back)
    warning = _("It is queued again with a fresh set of attempts.")
    return _asked(visit, found, form, verb=_("Retry the run"), warning=warning, back=back)


def _asked(visit: Visit, found: Run, form: ReasonForm, **facts: Any) -> HttpResponse:
    return visit.show("jobs/pages/runs/ask.html", form=form, run=found, **facts)


def _form(visit: Visit, found: Run) -> ReasonForm:
    if not visit.access.sees_arguments(found.owner_id):
        return ReasonForm(visit.request.POST or None)
    initial = {"arguments": readable(lambda: _by_name(found), otherwise="")}
    return RetryForm(visit.request.POST or None, initial=initial)


def _by_name(found: Run) -> str:
    """Return the arguments as JSON; empty if some were given by position."""
    args, kwargs = hidden_arguments(found.task, *found.arguments)
    return "" if args else json.dumps(kwargs, indent=2, ensure_ascii=False)
