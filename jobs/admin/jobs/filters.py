"""Filters of the list of jobs. An index answers each."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.filters import CHOICES, ChoiceFilter, without_nul
from jobs.catalog.registry import offered
from jobs.models import ScheduleKind


class EnabledFilter(admin.SimpleListFilter):
    title = _("enabled")
    parameter_name = "enabled"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("yes")), ("no", _("no"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(enabled=value == "yes") if value in ("yes", "no") else queryset


class ScheduleFilter(ChoiceFilter):
    title = _("schedule")
    parameter_name = "schedule"
    choices_of_column = ScheduleKind.choices


class TaskFilter(admin.SimpleListFilter):
    """By task: offers the offered tasks, and the one in the address."""

    title = _("task")
    parameter_name = "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        found = [(item.name, item.offer.title) for item in offered()][:CHOICES]
        asked = without_nul(request.GET.get(self.parameter_name, ""))
        if asked and asked not in dict(found):
            found.insert(0, (asked, asked))
        return found

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(task=without_nul(value)) if value else queryset
