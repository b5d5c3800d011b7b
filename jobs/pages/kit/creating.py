"""The page that creates a row of a noun, drawn from its declaration."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobs.actions import Done, Noun, create, creation_of, may_create, problem_of
from jobs.core.errors import FairshiftError
from jobs.core.language import in_language
from jobs.models import Owner, Scope
from jobs.pages.kit.actions import View, back_of, secret_page
from jobs.pages.kit.acts import done
from jobs.pages.kit.body_form import BodyForm, form_of
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.visit import Visit, page

ALL: Final = ""
"""The choice of all owners."""


def create_view(noun: Noun) -> View:
    """Return the view that creates a row of a noun."""
    creation = creation_of(noun)

    @page(noun.section or noun.plural, permission=creation.permission, methods=("GET", "POST"))
    def view(visit: Visit) -> HttpResponse:
        if not may_create(noun, by=visit.access):
            raise forbidden()
        form = form_of(creation.body)(visit.request.POST or None)
        owners = {} if noun.owner == "pk" else _offer_owners(visit, form, creation.is_for_all)
        back = back_of(visit, None, noun)
        form.initial["back"] = back
        label = gettext(creation.label)
        if visit.request.method == "POST" and form.is_valid():
            owner = owners.get(form.cleaned_data.get("owner", ALL))
            try:
                return _created(visit, noun, create(noun, form.body, owner=owner, by=visit.access))
            except FairshiftError as error:
                field, problem = problem_of(error)
                form.refuse(field, in_language(problem))
        explains = gettext(creation.explains) if creation.explains else ""
        facts: dict[str, Any] = {"label": label, "explains": explains, "back": back}
        return visit.show("jobs/pages/create.html", form=form, **facts)

    return view


def _offer_owners(visit: Visit, form: BodyForm, is_for_all: bool) -> dict[str, Owner]:
    """Add the choice of an owner to a form; return the owners by their slugs."""
    rows = visit.access.narrowed(Owner.objects.all(), path="pk", scope=Scope.ADMIN)
    if visit.owner is not None:
        rows = rows.filter(pk=visit.owner.pk)
    owners = {owner.slug: owner for owner in rows.order_by("slug")}
    is_for_all = is_for_all and visit.owner is None and visit.access.has(Scope.ADMIN)
    everywhere = [(ALL, _("all owners"))] if is_for_all else []
    choices = [*((slug, slug) for slug in owners), *everywhere]
    form.fields["owner"] = forms.ChoiceField(
        label=_("Owner"), required=not is_for_all, choices=choices
    )
    form.order_fields(["owner"])
    return owners


def _created(visit: Visit, noun: Noun, made: Done) -> HttpResponse:
    creation = creation_of(noun)
    to = back_of(visit, made.row, noun, is_asked=False)
    if creation.secret is None:
        return done(visit, in_language(made.text), to=to)
    words = {"label": creation.label, "text": made.text}
    return secret_page(visit, creation.secret(made.value), **words, row=made.row, back=to)
