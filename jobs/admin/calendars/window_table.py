"""The table of windows and freezes on a calendar's page, with state and next occurrence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from jobs.admin.kit import html
from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import clock, next_occurrences
from jobs.calendars.reads.window_state import state_of
from jobs.core.language import in_language
from jobs.models import Calendar, Window
from jobs.windows import in_words

MOST: Final = 200


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A window as a row of the table; of a broken one `words` has the error."""

    link: str
    words: str
    state: str
    more: str
    next: str
    reason: str


def row_of(window: Window, *, now: datetime) -> WindowRow:
    """Return the row of a window, or of its error if it cannot be read."""
    try:
        entry, state = entry_of(window), state_of(window, now=now)
        words: str = in_language(in_words(entry))
        found = next_occurrences(entry, after=now, count=1)
        upcoming = clock(found[0].span, ZoneInfo(entry.zone)) if found else _("none any more")
        mark, more = html.badge(state.word, state.kind), state.more
    # Rows may be written by raw SQL.
    except Exception as error:
        words, upcoming, more = _("cannot be read (%s)") % error, html.NOTHING, ""
        mark = html.badge(_("broken"), "failed")
    return WindowRow(
        link=html.link(window, window.get_effect_display()),
        words=words,
        state=mark,
        more=more,
        next=upcoming,
        reason=window.reason,
    )


def table_of(calendar: Calendar, *, now: datetime) -> str:
    """Return the table of a calendar's windows. Four queries, for any number of windows."""
    rows: Any = calendar.windows.select_related("calendar", "requested_by", "requested_by_token")
    windows = list(rows.prefetch_related("decisions").order_by("pk")[: MOST + 1])
    context = {
        "rows": [row_of(window, now=now) for window in windows[:MOST]],
        "more": html.list_link(Window, _("all of them"), calendar=calendar.pk)
        if len(windows) > MOST
        else "",
    }
    return render_to_string("admin/jobs/calendar/windows.html", context)
