"""The form that creates an endpoint."""

from __future__ import annotations

from typing import Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from jobs.actions import problem_of
from jobs.actions.webhooks import KEY_SHOWN, WebhookToCreate
from jobs.core import barrier
from jobs.core.errors import AccessDenied, OptionError
from jobs.core.phrases import phrase
from jobs.models import Owner, Scope
from jobs.pages.kit.actions import secret_page
from jobs.pages.kit.body_form import form_of
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.visit import Visit, page
from jobs.system.notices import endpoints

ALL: Final = ""
"""The choice of the installation, which has no owner."""


@page("webhooks", permission="jobs.add_webhookendpoint", methods=("GET", "POST"))
def create_webhook(visit: Visit) -> HttpResponse:
    """Create an endpoint, and show its key."""
    if not visit.access.has_somewhere(Scope.ADMIN):
        raise forbidden()
    rows = visit.access.narrowed(Owner.objects.all(), path="pk", scope=Scope.ADMIN)
    if visit.owner is not None:
        rows = rows.filter(pk=visit.owner.pk)
    owners = {owner.slug: owner for owner in rows.order_by("slug")}
    is_for_all = visit.owner is None and visit.access.has(Scope.ADMIN)
    form = form_of(WebhookToCreate)(visit.request.POST or None)
    everywhere = [(ALL, _("all owners"))] if is_for_all else []
    choices = [*((slug, slug) for slug in owners), *everywhere]
    form.fields["owner"] = forms.ChoiceField(label=_("Owner"), required=False, choices=choices)
    form.order_fields(["owner"])
    back = reverse("jobs:webhooks")
    if visit.request.method == "POST" and form.is_valid():
        given = form.body.model_dump(exclude={"owner", "is_for_all"})
        owner = owners.get(form.cleaned_data["owner"])
        try:
            with barrier.lifted():
                made = endpoints.make_endpoint(given, owner=owner, actor=visit.access.actor)
        except (OptionError, AccessDenied) as error:
            form.refuse(*problem_of(error))
        else:
            to = reverse("jobs:webhook", args=[made.endpoint.pk])
            words = {"label": gettext_noop("Create a webhook"), "text": phrase(KEY_SHOWN)}
            return secret_page(visit, made.secret, **words, row=made.endpoint, back=to)
    return visit.show("jobs/pages/webhooks/form.html", form=form, back=back)
