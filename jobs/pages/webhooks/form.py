"""Forms of an endpoint: create one, change one."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from jobs.actions.webhooks import KEY_SHOWN
from jobs.core import barrier
from jobs.core.errors import AccessDenied, OptionError
from jobs.core.phrases import phrase
from jobs.models import EventType, Owner, Scope, WebhookEndpoint
from jobs.models.fields import no_nul
from jobs.models.webhook import URL_MOST
from jobs.pages.kit.actions import secret_page
from jobs.pages.kit.acts import done
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.visit import Visit, page
from jobs.pages.webhooks.listing import find_endpoint
from jobs.runs.reads.choices import word_of
from jobs.system.notices import endpoints
from jobs.system.notices.interests import NAME_LIMIT, STATES

FORM: Final = "jobs/pages/webhooks/form.html"
ALL: Final = ""
"""The choice of the installation, which has no owner."""


class EndpointForm(forms.Form):
    """The fields of an endpoint."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LIMIT, validators=[no_nul])
    url = forms.CharField(
        label=_("URL"),
        max_length=URL_MOST,
        validators=[no_nul],
        help_text=_("https, at a public address; others need FAIRSHIFT['HTTP_ALLOWED_HOSTS']."),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"), choices=EventType.choices, widget=forms.CheckboxSelectMultiple
    )
    tasks = forms.CharField(
        label=_("Tasks"),
        required=False,
        validators=[no_nul],
        help_text=_("Names with * for any text, separated by commas. Empty: all tasks."),
    )
    states = forms.MultipleChoiceField(
        label=_("States"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Only runs that end in these states. Empty: all ends."),
    )
    has_details = forms.BooleanField(
        label=_("With details"),
        required=False,
        help_text=_("Send arguments, results and error texts, too."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        states: Any = self.fields["states"]
        states.choices = [(state, word_of(state)) for state in STATES]

    def given(self) -> dict[str, Any]:
        """Return the fields as the verbs take them."""
        data = {name: self.cleaned_data[name] for name in EndpointForm.base_fields}
        parts = (part.strip() for part in data["tasks"].split(","))
        return {**data, "tasks": [part for part in parts if part]}


class NewEndpointForm(EndpointForm):
    """With the owner, which does not change later."""

    owner = forms.ChoiceField(label=_("Owner"), required=False)
    field_order = ("owner",)

    def __init__(self, *args: Any, owners: list[Owner], is_for_all: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        everywhere = [(ALL, _("all owners"))] if is_for_all else []
        choices: Any = self.fields["owner"]
        choices.choices = [*((one.slug, one.slug) for one in owners), *everywhere]


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
    form = NewEndpointForm(
        visit.request.POST or None, owners=list(owners.values()), is_for_all=is_for_all
    )
    back = reverse("jobs:webhooks")
    if visit.request.method == "POST" and form.is_valid():
        slug = form.cleaned_data["owner"]
        owner = owners.get(slug)
        try:
            with barrier.lifted():
                made = endpoints.make_endpoint(form.given(), owner=owner, actor=visit.access.actor)
        except (OptionError, AccessDenied) as error:
            _show(form, error)
        else:
            to = reverse("jobs:webhook", args=[made.endpoint.pk])
            words = {"label": gettext_noop("Create a webhook"), "text": phrase(KEY_SHOWN)}
            return secret_page(visit, made.secret, **words, row=made.endpoint, back=to)
    note = _("Its key is shown once, when it is created.")
    facts: dict[str, Any] = {"form": form, "back": back, "verb": _("Create a webhook")}
    return visit.show(FORM, endpoint=None, note=note, **facts)


@page("webhooks", permission="jobs.change_webhookendpoint", methods=("GET", "POST"))
def change_webhook(visit: Visit, key: int) -> HttpResponse:
    """Change the fields of an endpoint."""
    found = find_endpoint(visit, key)
    visit.refuse_unless("jobs.change_webhookendpoint", Scope.ADMIN, found.owner_id)
    back = reverse("jobs:webhook", args=[found.pk])
    form = EndpointForm(visit.request.POST or None, initial=_initial(found))
    if visit.request.method == "POST" and form.is_valid():
        try:
            with barrier.lifted():
                endpoints.change_endpoint(found, form.given(), actor=visit.access.actor)
        except (OptionError, AccessDenied) as error:
            _show(form, error)
        else:
            return done(visit, _("%s is changed.") % found.name, to=back)
    facts: dict[str, Any] = {"form": form, "back": back, "verb": _("Change the webhook")}
    return visit.show(FORM, endpoint=found, **facts)


def _initial(found: WebhookEndpoint) -> dict[str, Any]:
    fields = {name: getattr(found, name) for name in EndpointForm.base_fields}
    return {**fields, "tasks": ", ".join(found.tasks)}


def _show(form: forms.Form, error: OptionError | AccessDenied) -> None:
    """Show a refusal at its field."""
    if isinstance(error, AccessDenied):
        form.add_error(None, str(error))
        return
    form.add_error(error.option if error.option in form.fields else None, error.problem)
