"""Which calendars a person sees, and who may change them and decide on their windows."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext as _

from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.calendars.visibility import visible_rows
from jobs.models import Calendar, Owner


def owner_or_shared(owner: Owner | None) -> str:
    """Return a link to a calendar's owner; a shared calendar has none."""
    return html.link(owner) if owner is not None else str(_("shared"))


class CalendarPages(ActionAdmin):
    """Pages of calendars, or of rows that belong to one. Mix in before other admin classes."""

    owner_path: ClassVar[str] = "owner"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        # Not by owner only, as on other pages: a shared calendar has no owner.
        rows: models.QuerySet[Any] = self.model._default_manager.all()
        ordering = self.get_ordering(request)
        rows = rows.order_by(*ordering) if ordering else rows
        return visible_rows(rows, request.user, path=self.owner_path.removesuffix("owner"))

    def owner_of(self, row: Any) -> int | None:
        calendar: Calendar = row if isinstance(row, Calendar) else row.calendar
        return calendar.owner_id

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Say no: they are deleted by the action."""
        return False
