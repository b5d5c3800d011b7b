"""The filter of jobs that need attention."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.filters import OwnerFilter, without_nul
from jobs.core.sql import now
from jobs.models import Owner, access
from jobs.recurring.health import HEALTHS, Owners, by_health


class HealthFilter(admin.SimpleListFilter):
    """Jobs that need attention. The search for late, failing and broken ones is bounded."""

    title = _("health")
    parameter_name = "health"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("late", _("late")),
            ("failing", _("failing")),
            ("paused", _("paused")),
            ("broken", _("broken")),
        ]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        if value not in HEALTHS:
            return queryset
        found, is_complete = by_health(queryset, value, _owners(request), now=now())
        if not is_complete:
            text = _("There may be more: the search is limited in time and in number.")
            messages.warning(request, text)
        return found


def _owners(request: HttpRequest) -> Owners:
    """Return the keys of the owners whose jobs the list can show; None for all owners."""
    slug = without_nul(request.GET.get(OwnerFilter.parameter_name, ""))
    if slug:
        mine = access.narrowed(Owner.objects.filter(slug=slug), request.user, path="pk")
        return list(mine.values_list("pk", flat=True))
    return None if access.sees_all(request.user) else access.owner_ids(request.user)
