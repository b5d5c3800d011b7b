"""Which calendars a person sees, and who changes them and decides on their windows."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.db import models
from django.http import HttpRequest

from jobs.admin.kit.verb_pages import VerbalAdmin
from jobs.admin.kit.verbs import Verb
from jobs.calendars.approvals import ROLES
from jobs.calendars.visibility import visible_rows
from jobs.models import Calendar, Role, access

APPROVES: Final = frozenset(ROLES)


class CalendarPages(VerbalAdmin):
    """Pages of calendars, or of rows that belong to one. Mix in before other admin classes."""

    calendar_path: ClassVar[str] = ""
    verb_roles: ClassVar[frozenset[Role]] = access.EDITS

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        # Not by owner alone, as the pages of other rows: a shared calendar has none.
        rows: models.QuerySet[Any] = self.model._default_manager.all()
        ordering = self.get_ordering(request)
        rows = rows.order_by(*ordering) if ordering else rows
        return visible_rows(rows, request.user, path=self.calendar_path)

    def owner_of(self, row: Any) -> int | None:
        calendar: Calendar = row if isinstance(row, Calendar) else row.calendar
        return calendar.owner_id

    def may(self, request: HttpRequest, verb: Verb, row: Any = None) -> bool:
        user: Any = request.user
        if not user.has_perm(verb.permission):
            return False
        if row is None:
            return access.has_some_role(user, self.verb_roles)
        return access.has_role(user, self.owner_of(row), self.verb_roles)

    def _ready(self, verb: Verb, rows: models.QuerySet[Any], request: HttpRequest) -> Any:
        path = f"{self.calendar_path}owner"
        return verb.applies(access.narrowed(rows, request.user, path=path, roles=self.verb_roles))
