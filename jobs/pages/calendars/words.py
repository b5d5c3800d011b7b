"""Windows in words, also those that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import Timetable, times_of
from jobs.calendars.reads.window_state import WindowState, state_of, unreadable
from jobs.core.language import in_language, number
from jobs.models import Window

PILLS: Final[Mapping[str, tuple[str, str]]] = {
    "succeeded": ("✓", "good"),
    "held": ("?", "warn"),
    "expired": ("✱", "held"),
    "failed": ("✕", "bad"),
    "cancelled": ("⊘", "idle"),
}
"""The sign and the tone for each `kind` of a window's state."""


def applies_to(shown: Sequence[Any], count: int) -> str:
    """Return what a calendar applies to: the first of `count` rows by kind and name."""
    names = [f"{row._meta.verbose_name} {row}" for row in shown]
    if count > len(shown):
        names.append(_("and %s more") % number(count - len(shown)))
    return ", ".join(names)


def state_with_pill(window: Window, *, now: datetime) -> tuple[WindowState, str, str]:
    """Return the state of a window, its sign and its tone."""
    try:
        state = state_of(window, now=now)
    # Rows may be written by raw SQL.
    except Exception:
        state = WindowState(_("broken"), "failed")
    return (state, *PILLS[state.kind])


def timetable_of(window: Window, *, now: datetime) -> Timetable:
    """Return the next occurrences of a stored window, or why it cannot be read."""
    try:
        return times_of(entry_of(window), after=now)
    # Rows may be written by raw SQL.
    except Exception as error:
        return Timetable(words="", problem=in_language(unreadable(error)))
