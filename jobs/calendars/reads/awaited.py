"""The window without an approval for which held runs wait."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from jobs.calendars.reads.month import runs_of
from jobs.calendars.reads.window_state import to_be_approved
from jobs.calendars.visibility import visible_rows
from jobs.core.counting import capped_count, within
from jobs.models import Window
from jobs.models.run import RunQuerySet

MOST: Final = 10
"""Requests that are looked at, the oldest ones."""
MILLISECONDS: Final = 300
"""Most time for each of them."""


class Awaited(NamedTuple):
    """A window that needs an approval, and the number of runs of what it applies to."""

    window: Window
    runs: int


def awaited_approval(held: RunQuerySet, user: Any) -> Awaited | None:
    """Return the oldest request of an approval for which some of these held runs wait."""
    windows = visible_rows(Window.objects.all(), user, path="calendar__")
    asked = to_be_approved(windows).select_related("calendar").order_by("requested_at", "pk")
    for window in asked[:MOST]:
        waiting = held.filter(runs_of(window.calendar, user))
        if within(MILLISECONDS, waiting.exists):
            return Awaited(window, capped_count(waiting))
    return None
