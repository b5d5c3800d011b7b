"""Filters of the lists of calendars and of windows."""

# ruff: noqa: ARG002  Django's signatures

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.filters import OwnerFilter
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
    """The same, of the calendar of a window."""

    column = "calendar__owner_id"


class ApprovalsFilter(admin.SimpleListFilter):
    """Calendars with windows that nobody has decided on."""

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
    """Windows by what was decided last on them as they are now."""

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


class EffectFilter(admin.SimpleListFilter):
    title = _("effect")
    parameter_name = "effect"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(effect.value, effect.label) for effect in WindowEffect]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(effect=value) if value in WindowEffect.values else queryset
