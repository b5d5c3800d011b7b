"""Calendars and windows that a visitor sees. Those of others are as unknown as none."""

from __future__ import annotations

from typing import Any

from jobs.actions import Noun, find
from jobs.actions.calendars import CALENDARS
from jobs.actions.windows import WINDOWS
from jobs.core.errors import NotFound
from jobs.models import Calendar, Scope, Window
from jobs.models.access import Access
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.visit import Visit


def calendars_of(visit: Visit) -> Any:
    """Return the calendars that the visitor sees, with their owners.

    With a chosen owner: those of this owner, and shared ones that apply to something of it.
    """
    access = visit.access
    if visit.owner is not None:
        access = Access(access.actor, by_owner={visit.owner.pk: frozenset({Scope.READ})})
    return CALENDARS.seen_by(access)


def find_calendar(visit: Visit, key: int) -> Calendar:
    """Return a calendar that the visitor sees; raise the answer 404."""
    found: Calendar = _find(visit, CALENDARS, key)
    return found


def find_window(visit: Visit, key: int) -> Window:
    """Return a window or freeze that the visitor sees, with its calendar; raise the answer 404."""
    found: Window = _find(visit, WINDOWS, key)
    return found


def _find(visit: Visit, noun: Noun, key: int) -> Any:
    try:
        return find(noun, key, by=visit.access)
    except NotFound:
        raise not_found() from None
