"""The share, the limits and the objective of an owner are set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.core import barrier
from jobs.core.errors import OptionError
from jobs.models import Owner, Scope
from jobs.owners.limits import LIMITS, limit_owner
from jobs.owners.registry import change_owner
from jobs.pages.kit import nav
from jobs.pages.kit.acts import ReasonForm, done
from jobs.pages.kit.visit import Visit, page


class LimitForm(ReasonForm):
    """The share and the limits of an owner, and how long its runs stay."""

    weight = forms.IntegerField(
        label=_("Weight"), help_text=_("Its share of the workers beside the weights of others.")
    )
    max_running = forms.IntegerField(
        label=_("Most runs at once"), required=False, help_text=_("Empty: no limit.")
    )
    rate_limit_per_minute = forms.IntegerField(
        label=_("Most starts a minute"), required=False, help_text=_("Empty: no limit.")
    )
    run_days = forms.IntegerField(
        label=_("Days that ended runs stay"),
        required=False,
        help_text=_("1 to 3660. Empty: as the installation has it."),
    )
    failed_run_days = forms.IntegerField(
        label=_("Days that failed runs stay"),
        required=False,
        help_text=_("1 to 3660. Empty: as the installation has it."),
    )
    field_order = (*LIMITS, "reason")


class ObjectiveForm(ReasonForm):
    """The wait objective of an owner."""

    wait_objective_seconds = forms.IntegerField(
        label=_("Longest wait in seconds"),
        required=False,
        help_text=_("From when a run may start to its start: 1 to 86400. Empty: no objective."),
    )
    wait_objective_percent = forms.FloatField(
        label=_("Percent of the starts"),
        help_text=_("The part that starts within that wait: 50 to 99.9."),
    )
    field_order = ("wait_objective_seconds", "wait_objective_percent", "reason")


@page("owners", permission="jobs.change_owner", methods=("GET", "POST"))
def limit(visit: Visit, slug: str) -> HttpResponse:
    """Set an owner's weight and limits, which decide about the shares of other owners, too."""
    found = visit.one(Owner.objects.all(), path="pk", slug=slug)
    visit.refuse_unless("jobs.change_owner", Scope.ADMIN, None)
    before = {name: getattr(found, name) for name in LIMITS}

    def act(form: Any) -> Any:
        data = form.cleaned_data
        changed = {name: data[name] for name in LIMITS if data[name] != before[name]}
        if not changed:
            return _("Nothing has been changed.")
        limit_owner(found, actor=visit.access.actor, reason=data["reason"], **changed)
        return _("%s has these limits now.") % found.slug

    note = _("The shares of the other owners change, too. Active runs continue.")
    form = LimitForm(visit.request.POST or None, initial=before)
    return _asked(visit, found, form, act, verb=_("Set the limits"), note=note)


@page("owners", permission="jobs.change_owner", methods=("GET", "POST"))
def objective(visit: Visit, slug: str) -> HttpResponse:
    """Set how long an owner's runs may wait. It changes no run's turn."""
    found = visit.one(Owner.objects.all(), path="pk", slug=slug)
    visit.refuse_unless("jobs.change_owner", Scope.ADMIN, found.pk)

    def act(form: Any) -> Any:
        change_owner(found, actor=visit.access.actor, **form.cleaned_data)
        return _("%s has this objective now.") % found.slug

    names = ("wait_objective_seconds", "wait_objective_percent")
    initial = {name: getattr(found, name) for name in names}
    form = ObjectiveForm(visit.request.POST or None, initial=initial)
    note = _("It is measured, and changes no run's turn.")
    return _asked(visit, found, form, act, verb=_("Set the objective"), note=note)


def _page_of(owner: Owner) -> str:
    return nav.address("owner", owner.slug) or ""


def _asked(
    visit: Visit, owner: Owner, form: forms.Form, act: Callable[[Any], Any], **words: Any
) -> HttpResponse:
    """Show the form of a verb, or act and go to the owner; a refusal is shown at its field."""
    if visit.request.method == "POST" and form.is_valid():
        try:
            with barrier.lifted():
                said = act(form)
        except OptionError as error:
            form.add_error(error.option if error.option in form.fields else None, error.problem)
        else:
            return done(visit, said, to=_page_of(owner))
    facts = {"owner": owner, "form": form, "back": _page_of(owner), **words}
    return visit.show("jobs/pages/owners/act.html", **facts)
