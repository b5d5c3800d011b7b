"""Calendars and windows that a visitor sees. Those of others are as unknown as none."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models

from jobs.actions.windows import WINDOWS
from jobs.calendars.visibility import visible_rows
from jobs.models import Calendar, Scope, Window
from jobs.models.access import Access
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.visit import Visit

Row = TypeVar("Row", bound=models.Model)


def calendars_of(visit: Visit) -> Any:
    """Return the calendars that the visitor sees, with their owners.

    With a chosen owner: those of this owner, and shared ones that apply to something of it.
    """
    access = visit.access
    if visit.owner is not None:
        access = Access(access.actor, by_owner={visit.owner.pk: frozenset({Scope.READ})})
    return visible_rows(Calendar.objects.select_related("owner"), access)


def find_calendar(visit: Visit, key: int) -> Calendar:
    """Return a calendar that the visitor sees; raise the answer 404."""
    return _first(visible_rows(Calendar.objects.select_related("owner"), visit.access), key)


def find_window(visit: Visit, key: int) -> Window:
    """Return a window or freeze that the visitor sees, with its calendar; raise the answer 404."""
    return _first(WINDOWS.seen_by(visit.access), key)


def _first(rows: models.QuerySet[Row], key: int) -> Row:
    found = rows.filter(pk=key).first()
    if found is None:
        raise not_found()
    return found
