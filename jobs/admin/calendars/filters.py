"""Filters of the lists of calendars and of windows."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.filters import ChoiceFilter, OwnerFilter
from jobs.calendars.reads.window_state import (
    needing_approval,
    to_be_approved,
    with_approval,
    with_decision,
)
from jobs.models import Decision, Window, WindowEffect

SHARED = "(shared)"


class SharedOwnerFilter(OwnerFilter):
    """By owner, or shared."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(SHARED, _("shared")), *super().lookups(request, model_admin)]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == SHARED:
            return queryset.filter(**{f"{self.column}__isnull": True})
        return super().queryset(request, queryset)


class CalendarOwnerFilter(SharedOwnerFilter):
    """By the owner of a window's calendar."""

    column = "calendar__owner_id"


class ApprovalsFilter(admin.SimpleListFilter):
    """Calendars with windows that wait for approval."""

    title = _("approval")
    parameter_name = "approval"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("asked", _("windows to be approved"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() != "asked":
            return queryset
        windows = to_be_approved(Window.objects.filter(calendar=OuterRef("pk")))
        return queryset.filter(Exists(windows))


class DecisionFilter(admin.SimpleListFilter):
    """Windows by the last decision on their present revision."""

    title = _("approval")
    parameter_name = "approval"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        decided = [(decision.value, decision.label) for decision in Decision]
        return [("asked", _("to be approved")), *decided, ("none", _("needs none"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value == "asked":
            return to_be_approved(queryset)
        if value == "none":
            needing = needing_approval(Window.objects.all()).values("pk")
            return queryset.exclude(pk__in=needing)
        if value == Decision.APPROVED:
            return with_approval(queryset)
        return with_decision(queryset, value) if value in Decision.values else queryset


class EffectFilter(ChoiceFilter):
    title = _("effect")
    parameter_name = "effect"
    choices_of_column = WindowEffect.choices
