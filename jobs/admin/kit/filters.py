"""Filters of lists. An index answers each; the number of choices is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.core.ids import first_id_of
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Owner, access
from jobs.runs.reads.choices import AGES, GROUPS

CHOICES: Final = 50
UNKNOWN: Final = "unknown"
"""Queued runs that a worker returned because no live worker knew their task."""


class ChoiceFilter(admin.SimpleListFilter):
    """By the value of a column; subclasses say which, and its choices."""

    parameter_name: str
    choices_of_column: Sequence[tuple[str, Any]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.choices_of_column)

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value not in dict(self.choices_of_column):
            return queryset
        return queryset.filter(**{self.parameter_name: value})


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        groups: list[tuple[str, Any]] = [(name, label) for name, (_states, label) in GROUPS.items()]
        groups.append((UNKNOWN, _("returned by a worker: unknown task")))
        return groups + [(state.value, state.value) for state in State]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value in GROUPS:
            return queryset.filter(state__in=sorted(GROUPS[value][0]))
        if value == UNKNOWN:
            # The second condition is that of the partial index: PostgreSQL cannot derive it.
            return queryset.filter(state=State.QUEUED, blocked_by="task").exclude(blocked_by="")
        return queryset.filter(state=value) if value in set(State) else queryset


class OwnerFilter(admin.SimpleListFilter):
    """By owner: offers the first owners by name, and the one in the address."""

    title = _("owner")
    parameter_name = "owner"
    column = "owner_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        mine = access.narrowed(Owner.objects.all(), request.user, path="pk")
        slugs = list(mine.values_list("slug", flat=True)[:CHOICES])
        asked = request.GET.get(self.parameter_name)
        if asked and asked not in slugs and mine.filter(slug=without_nul(asked)).exists():
            slugs.insert(0, asked)
        return [(slug, slug) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        slug = self.value()
        if not slug:
            return queryset
        # The keys are read first: with them the planner knows how many rows to expect.
        mine = access.narrowed(Owner.objects.all(), request.user, path="pk")
        keys = list(mine.filter(slug=without_nul(slug)).values_list("pk", flat=True))
        return queryset.filter(**{f"{self.column}__in": keys})


class AgeFilter(admin.SimpleListFilter):
    """By the time that a run's id begins with: PostgreSQL skips older partitions."""

    title = _("submitted")
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, label) for name, (_span, label) in AGES.items()]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value not in AGES:
            return queryset
        return queryset.filter(id__gte=first_id_of(now() - AGES[value][0]))


class PausedFilter(admin.SimpleListFilter):
    title = _("pause")
    parameter_name = "paused"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("paused now")), ("no", _("not paused"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        paused = Owner.objects.paused().values("pk")
        if self.value() == "yes":
            return queryset.filter(pk__in=paused)
        return queryset.exclude(pk__in=paused) if self.value() == "no" else queryset


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
