"""Filters of lists, drawn from their declaration. An index answers each; choices are bounded."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from jobs.actions import Shown
from jobs.actions.filters.declared import SHARED, By, Choices, Filter, by_owner, part_of
from jobs.core.language import in_language
from jobs.models import Owner
from jobs.models.access import access_of
from jobs.pages.kit.body_form import kind_of

OFFERED: Final = 50


class OwnerFilter(admin.SimpleListFilter):
    """By owner: offers the first owners by name, and the one in the address."""

    title = _("owner")
    parameter_name = "owner"
    by = by_owner()
    has_shared = False
    """Whether the list also has rows that all owners share."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        mine = access_of(request.user).narrowed(Owner.objects.all(), path="pk")
        slugs = list(mine.values_list("slug", flat=True)[:OFFERED])
        asked = without_nul(request.GET.get(self.parameter_name, ""))
        if asked and asked not in slugs and mine.filter(slug=asked).exists():
            slugs.insert(0, asked)
        shared: list[tuple[str, Any]] = [(SHARED, _("shared"))] if self.has_shared else []
        return shared + [(slug, slug) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        slug = without_nul(self.value() or "")
        return self.by.narrow(queryset, slug, access_of(request.user)) if slug else queryset


class DeclaredFilter(admin.SimpleListFilter):
    """A field of a list's filters."""

    filters: type[Filter]
    parameter_name: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        choices = part_of(self.filters.model_fields[self.parameter_name], Choices)
        found = [(value, in_language(label)) for value, label in choices.pairs]
        asked = without_nul(request.GET.get(self.parameter_name, ""))
        if choices.is_open and asked and asked not in dict(found):
            found.insert(0, (asked, asked))
        return found

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if not (value := self.value()):
            return queryset
        is_list = kind_of(self.filters.model_fields[self.parameter_name].annotation) is list
        given: dict[str, Any] = {self.parameter_name: [value] if is_list else value}
        # The search for jobs of a health is for those of an owner.
        owner = without_nul(request.GET.get("owner", ""))
        if owner and "owner" in self.filters.model_fields:
            given["owner"] = owner
        try:
            wanted = self.filters(**given)
        except ValidationError:
            return queryset.none()
        found = wanted.narrow(queryset, access=access_of(request.user))
        if not getattr(wanted, "is_complete", True):
            text = _("There may be more: the search is limited in time and in number.")
            messages.warning(request, text)
        return found


def declared(
    filters: type[Filter], *names: str, has_shared: bool = False
) -> tuple[type[admin.SimpleListFilter], ...]:
    """Return the filters of an admin's list, of the declared ones those with these names."""
    return tuple(_filter(filters, name, has_shared) for name in names)


def _filter(filters: type[Filter], name: str, has_shared: bool) -> type[admin.SimpleListFilter]:
    info = filters.model_fields[name]
    if name == "owner":
        facts = {"by": part_of(info, By), "has_shared": has_shared}
        return type("OwnerFilter", (OwnerFilter,), facts)
    title = _(part_of(info, Shown).label)
    facts = {"filters": filters, "title": title, "parameter_name": name}
    return type(f"{name.capitalize()}Filter", (DeclaredFilter,), facts)


class LinkFilter(admin.SimpleListFilter):
    """By a row of another model; shown only while it is in the address."""

    model: type[models.Model]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asked = request.GET.get(self.parameter_name or "")
        return [(asked, without_nul(asked)[:36])] if asked else []

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if not value:
            return queryset
        try:
            key = self.model._meta.pk.to_python(value)
        # The address may hold anything: a value that is no key names no row.
        except Exception:
            return queryset.none()
        return queryset.filter(**{f"{self.parameter_name}_id": key})


def linked(name: str, to: type[models.Model]) -> type[LinkFilter]:
    """Return a filter `?name=<key>` by a foreign key of this name."""
    made = {"title": to._meta.verbose_name, "parameter_name": name, "model": to}
    return type(f"{name.capitalize()}Filter", (LinkFilter,), made)


def without_nul(value: str) -> str:
    """Return a text without NUL, which PostgreSQL refuses in a query."""
    return value.replace("\x00", "")
