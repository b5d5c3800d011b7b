"""One window or freeze, and the decisions on it: approve, reject, revoke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.calendars import approvals
from jobs.calendars.changes import changing
from jobs.calendars.reads.window_state import (
    mark_of,
    needing_approval,
    to_be_approved,
    with_approval,
)
from jobs.core import barrier
from jobs.core.errors import FairshiftError
from jobs.core.sql import now
from jobs.models import Scope, Window
from jobs.pages.calendars.decision_fields import (
    StandingFields,
    WhichFields,
    decision_of,
    form_of,
)
from jobs.pages.calendars.finding import find_window
from jobs.pages.calendars.words import state_with_pill, timetable_of
from jobs.pages.kit import nav
from jobs.pages.kit.acts import ReasonForm, done, failed
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.visit import Visit, page

DECISIONS: Final = 100


class DecisionForm(WhichFields, ReasonForm):
    """All occurrences or one, a reason, and what the visitor has seen of the window."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)


class ApprovalForm(StandingFields, DecisionForm):
    """A decision, and the end of the approval."""

    field_order = ("occurrence", "until", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A decision on a window."""

    label: Any
    warning: Any
    decide: Callable[..., Any]
    applies: Callable[[QuerySet[Any]], QuerySet[Any]]
    refused: Any
    form: type[DecisionForm] = DecisionForm
    is_bad: bool = False


VERBS: Final = {
    "approve": Verb(
        label=lazy("Approve"),
        warning=lazy(
            "Waiting runs may start in it. A change that may open more needs a new approval;"
            " a change that only narrows it does not."
        ),
        decide=approvals.approve,
        applies=needing_approval,
        refused=lazy("This needs no approval."),
        form=ApprovalForm,
    ),
    "reject": Verb(
        label=lazy("Reject"),
        warning=lazy("It does not count, and nothing starts in it."),
        decide=approvals.reject,
        applies=to_be_approved,
        refused=lazy("This is decided already, or needs no approval."),
    ),
    "revoke": Verb(
        label=lazy("Revoke"),
        warning=lazy("It no longer counts. Its active runs end as the calendar says for a close."),
        decide=approvals.revoke,
        applies=with_approval,
        refused=lazy("This is not approved."),
        is_bad=True,
    ),
}


@page("calendars", permission="jobs.view_window")
def window(visit: Visit, key: int) -> HttpResponse:
    """Show one window or freeze."""
    found = find_window(visit, key)
    moment = now()
    # The barrier hides the names of users.
    with barrier.lifted():
        state, sign, tone = state_with_pill(found, now=moment)
        requester = found.requester
        timetable = timetable_of(found, now=moment)
        decisions = list(found.decisions.order_by("-pk")[:DECISIONS])
        verbs = [
            (verb.label, reverse("jobs:window_verb", args=[found.pk, name]))
            for name, verb in VERBS.items()
            if _may(visit, found) and _applies(verb, found)
        ]
    return visit.show(
        "jobs/pages/calendars/window.html",
        window=found,
        state=state,
        sign=sign,
        tone=tone,
        requester=requester,
        timetable=timetable,
        decisions=decisions,
        verbs=verbs,
        admin_url=nav.admin_address(visit.request.user, "window_change", found.pk),
    )


@page("calendars", permission="jobs.view_window", methods=("GET", "POST"))
def window_verb(visit: Visit, key: int, name: str) -> HttpResponse:
    """Ask before a decision on a window; decide after a confirmed POST."""
    found = find_window(visit, key)
    verb = VERBS.get(name)
    if verb is None:
        raise not_found()
    visit.refuse_unless(approvals.PERMISSION, Scope.APPROVE, found.calendar.owner_id)
    back = visit.address("window", found.pk) or ""
    with barrier.lifted():
        if not _applies(verb, found):
            return failed(visit, verb.refused, to=back)
        made = form_of(verb.form, found)
        form = made(visit.request.POST or None, initial={"seen": mark_of(found)})
        if visit.request.method == "POST" and form.is_valid():
            return _decided(visit, verb, found, form, back=back)
    return visit.show(
        "jobs/pages/calendars/confirm.html", window=found, verb=verb, form=form, back=back
    )


def _decided(visit: Visit, verb: Verb, found: Window, form: Any, *, back: str) -> HttpResponse:
    try:
        with changing(found.calendar):
            if form.cleaned_data["seen"] != mark_of(Window.objects.get(pk=found.pk)):
                text = _("It has changed since you looked at it. Please look again.")
                return failed(visit, text, to=back)
            verb.decide(found, actor=visit.access.actor, **decision_of(form.cleaned_data))
    except FairshiftError as error:
        return failed(visit, str(error), to=back)
    return done(visit, _("The decision is stored."), to=back)


def _may(visit: Visit, found: Window) -> bool:
    return visit.may(approvals.PERMISSION, Scope.APPROVE, found.calendar.owner_id)


def _applies(verb: Verb, found: Window) -> bool:
    return verb.applies(Window.objects.filter(pk=found.pk)).exists()
