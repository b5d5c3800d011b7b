"""Saved views: a user names a filter of runs, opens it again, renames, replaces and deletes it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.actions.filters.runs import RunFilter
from jobs.core import barrier
from jobs.core.language import number
from jobs.models import SavedView
from jobs.models.fields import no_nul
from jobs.models.saved_view import VIEW_NAME_LIMIT, VIEW_QUERY_LIMIT
from jobs.pages.kit.acts import done, failed
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit, page

MOST: Final = 50
"""Most saved views of a user."""


class NameForm(forms.Form):
    """The name of a saved view."""

    name = forms.CharField(
        label=lazy("Name"),
        max_length=VIEW_NAME_LIMIT,
        validators=[no_nul],
        help_text=lazy("Only you see your saved views."),
        error_messages={
            "required": format_lazy(lazy("write 1 to {most} characters"), most=VIEW_NAME_LIMIT)
        },
        widget=forms.TextInput(attrs={"size": 40, "autofocus": True}),
    )

    def refuse_taken(self) -> None:
        """Add the error of a name that another view of the user has."""
        self.add_error("name", _("you have a view of this name"))


class SaveForm(NameForm):
    """The name, and whether it may be that of a view that exists."""

    replaces = forms.BooleanField(
        label=lazy("Replace the view of this name, if there is one"), required=False
    )


def links_of(visit: Visit, query: str) -> list[tuple[SavedView, str, bool]]:
    """Return the visitor's views, the address of each, and whether `query` is its filter."""
    with barrier.lifted():
        mine = list(_mine(visit)[:MOST])
    address = reverse("jobs:runs")
    return [(view, f"{address}?{view.query}", view.query == query) for view in mine]


@page("runs", permission="jobs.view_run")
def saved_views(visit: Visit) -> HttpResponse:
    """Show the saved views of the visitor."""
    return visit.show("jobs/pages/runs/saved.html", views=links_of(visit, ""), most=MOST)


@page("runs", permission="jobs.view_run", methods=("GET", "POST"))
def save_view(visit: Visit) -> HttpResponse:
    """Save the filter in the address under a name."""
    search = FilterForm(visit, RunFilter)
    if not search.is_valid() or not search.is_narrow:
        return failed(visit, _("Choose a filter first."), to=reverse("jobs:runs"))
    back = f"{reverse('jobs:runs')}?{search.query}"
    form = SaveForm(visit.request.POST or None)
    if visit.request.method == "POST" and form.is_valid():
        with barrier.lifted():
            _save(visit, form, search.query)
        if form.is_valid():
            return done(visit, _("The view is saved."), to=back)
    verb = _("Save this view")
    return visit.show("jobs/pages/runs/name.html", form=form, verb=verb, back=back)


def _save(visit: Visit, form: SaveForm, query: str) -> None:
    """Store the view, or add to the form why it is not stored."""
    name, replaces = form.cleaned_data["name"], form.cleaned_data["replaces"]
    mine = _mine(visit)
    if len(query) > VIEW_QUERY_LIMIT:
        limits = {"most": number(VIEW_QUERY_LIMIT), "got": number(len(query))}
        form.add_error(
            None,
            _("The filter has %(got)s characters in its address; a view stores %(most)s.") % limits,
        )
    elif replaces and mine.filter(name=name).update(query=query):
        return
    elif mine.count() >= MOST and not mine.filter(name=name).exists():
        form.add_error(None, _("You have %s saved views, the most. Delete one first.") % MOST)
    elif not mine.get_or_create(user=visit.access.actor, name=name, defaults={"query": query})[1]:
        form.refuse_taken()


@page("runs", permission="jobs.view_run", methods=("GET", "POST"))
def rename_view(visit: Visit, key: int) -> HttpResponse:
    """Give a saved view another name."""
    found, back = _one(visit, key), reverse("jobs:saved_views")
    form = NameForm(visit.request.POST or None, initial={"name": found.name})
    if visit.request.method == "POST" and form.is_valid():
        try:
            with barrier.lifted(), transaction.atomic():
                _mine(visit).filter(pk=found.pk).update(name=form.cleaned_data["name"])
            return done(visit, _("The view is renamed."), to=back)
        except IntegrityError:
            form.refuse_taken()
    verb = _("Rename the view")
    return visit.show("jobs/pages/runs/name.html", form=form, verb=verb, back=back)


@page("runs", permission="jobs.view_run", methods=("GET", "POST"))
def delete_view(visit: Visit, key: int) -> HttpResponse:
    """Ask once, and delete a saved view. Runs stay as they are."""
    found, back = _one(visit, key), reverse("jobs:saved_views")
    if visit.request.method == "POST":
        with barrier.lifted():
            _mine(visit).filter(pk=found.pk).delete()
        return done(visit, _("The view is deleted."), to=back)
    return visit.show(
        "jobs/pages/runs/name.html",
        form=forms.Form(),
        verb=_("Delete the view"),
        view=found,
        is_bad=True,
        back=back,
    )


def _mine(visit: Visit) -> Any:
    return SavedView.objects.filter(user_id=visit.access.actor.pk)


def _one(visit: Visit, key: int) -> SavedView:
    """Return a view of the visitor; raise the answer 404 for any other key."""
    with barrier.lifted():
        found: SavedView | None = _mine(visit).filter(pk=key).first()
    if found is None:
        raise not_found()
    return found
