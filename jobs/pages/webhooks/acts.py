"""Verbs on an endpoint: try it, give it a new key, send deliveries again, delete it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from jobs.core import barrier
from jobs.core.errors import AccessDenied, OptionError
from jobs.models import DeliveryState, Scope, WebhookEndpoint
from jobs.pages.kit.acts import ReasonForm, done
from jobs.pages.kit.errors import forbidden, not_found
from jobs.pages.kit.visit import Visit, page
from jobs.pages.webhooks.listing import find_endpoint
from jobs.system.notices import endpoints

ACT: Final = "jobs/pages/webhooks/act.html"


class RotateForm(ReasonForm):
    """How long the old key signs, too."""

    old_key_hours = forms.FloatField(
        label=_("Hours that the old key stays valid"), initial=24, min_value=0, max_value=720
    )
    field_order = ("old_key_hours", "reason")


class Act(NamedTuple):
    """A verb of the page: its label, what to know before, its form and its function."""

    label: Any
    note: Any
    act: Callable[[Visit, WebhookEndpoint, dict[str, Any]], Any]
    form: type[forms.Form] = ReasonForm
    permission: str = "jobs.change_webhookendpoint"


def _test(visit: Visit, found: WebhookEndpoint, data: dict[str, Any]) -> Any:
    endpoints.send_test(found, actor=visit.access.actor, reason=data["reason"])
    return _("A test is on its way.")


def _replay(visit: Visit, found: WebhookEndpoint, data: dict[str, Any]) -> Any:
    rows = found.deliveries.filter(state=DeliveryState.FAILED).order_by("pk")
    keys = list(rows.values_list("pk", flat=True)[: endpoints.REPLAYS_MOST])
    count = endpoints.replay(found, keys, actor=visit.access.actor, reason=data["reason"])
    return _("%s deliveries are sent again.") % count


def _delete(visit: Visit, found: WebhookEndpoint, data: dict[str, Any]) -> Any:
    endpoints.delete_endpoint(found, actor=visit.access.actor, reason=data["reason"])
    return _("%s is deleted.") % found.name


def _rotate(visit: Visit, found: WebhookEndpoint, data: dict[str, Any]) -> Any:
    return endpoints.rotate_key(
        found,
        old_key_seconds=data["old_key_hours"] * 3_600,
        actor=visit.access.actor,
        reason=data["reason"],
    )


VERBS: Final = {
    "test": Act(
        _("Send a test"), _("An event of type webhook.test is sent before all others."), _test
    ),
    "replay": Act(
        _("Send failed deliveries again"),
        _("They keep their ids, by which the receiver knows repeats."),
        _replay,
    ),
    "rotate": Act(
        _("New key"),
        _("The new key is shown once. Until its end, the old key signs, too."),
        _rotate,
        form=RotateForm,
    ),
    "delete": Act(
        _("Delete the webhook"),
        _("Its deliveries are deleted, too, and what waits is not sent."),
        _delete,
        permission="jobs.delete_webhookendpoint",
    ),
}


@page("webhooks", permission="jobs.view_webhookendpoint", methods=("GET", "POST"))
def webhook_verb(visit: Visit, key: int, name: str) -> HttpResponse:
    """Ask for the reason of a verb, and act."""
    found = find_endpoint(visit, key)
    if name not in VERBS:
        raise not_found()
    verb = VERBS[name]
    visit.refuse_unless(verb.permission, Scope.ADMIN, found.owner_id)
    back = reverse("jobs:webhook", args=[found.pk])
    form = verb.form(visit.request.POST or None)
    if visit.request.method == "POST" and form.is_valid():
        try:
            with barrier.lifted():
                said = verb.act(visit, found, form.cleaned_data)
        except AccessDenied:
            raise forbidden() from None
        except OptionError as error:
            form.add_error(None, f"{error.option}: {error.problem}")
        else:
            if isinstance(said, endpoints.MadeEndpoint):
                return secret_page(visit, said)
            to = reverse("jobs:webhooks") if name == "delete" else back
            return done(visit, said, to=to)
    facts = {"endpoint": found, "form": form, "back": back, "note": verb.note}
    return visit.show(ACT, verb=verb.label, is_bad=name == "delete", **facts)


def secret_page(visit: Visit, made: endpoints.MadeEndpoint) -> HttpResponse:
    """Show a key: the only page that ever does."""
    response = visit.show(
        "jobs/pages/webhooks/secret.html", endpoint=made.endpoint, secret=made.secret
    )
    response["Cache-Control"] = "no-store"
    return response
