"""A month, one cell a day: of a calendar, or of all calendars that apply to a row.

However many windows a day has, a cell stays short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Model
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.actions import find
from jobs.actions.calendars import CALENDARS
from jobs.calendars import ical_feed
from jobs.calendars.approvals import PERMISSION
from jobs.calendars.reads import month as reads
from jobs.calendars.reads import month_layout, status
from jobs.calendars.reads.month_layout import Day, Mark, Strip
from jobs.calendars.reads.window_state import to_be_approved, words_of
from jobs.core import barrier
from jobs.core.language import number
from jobs.core.sql import now
from jobs.models import Calendar, Job, Owner, Scope, Target, Window
from jobs.pages.calendars.words import applies_to
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.rows import row_address
from jobs.pages.kit.visit import Visit, page
from jobs.windows import Span

LISTED: Final = 2
"""Freezes, or windows without an approval, that a cell names; more are shown as a count."""
WINDOWS: Final = 3
"""Windows of a cell that need no count: its open hours say the same."""
ASKED: Final = 10
"""Windows to be approved that the page lists."""
SUBJECTS: Final[Mapping[str, type[Model]]] = {"owner": Owner, "job": Job, "target": Target}
"""Rows that calendars apply to and that have a month, by their names in its address."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A day of the month. `rails` are the strips of what is not open, by look."""

    day: Day
    rails: Sequence[tuple[str, Sequence[Strip]]]
    lines: Sequence[tuple[str, str]]
    """A look and a text each."""


@page("calendars", permission="jobs.view_calendar")
def calendar(visit: Visit, key: int) -> HttpResponse:
    """Show a month of a calendar."""
    found: Calendar = find(CALENDARS, key, by=visit.access)
    moment = now()
    with barrier.lifted():
        view = _asked_month(visit, found, now=moment)
        status.complete([found], visit.access, now=moment)
        status.find_far_opening(found, now=moment)
        asked = _asked(found)
        is_stopped = ical_feed.is_stopped(found)
        asked_in_words = [(window, words_of(window)) for window in asked]
    shown: Any = found
    return visit.show(
        "jobs/pages/calendars/month.html",
        calendar=found,
        view=view,
        cells=_cells(view),
        opened=shown.page_status,
        applies_to=applies_to(*shown.page_attached),
        asked=asked_in_words,
        asked_count=shown.page_asked,
        may_decide=visit.may(PERMISSION, Scope.APPROVE, found.owner_id),
        buttons=buttons(visit, CALENDARS, found),
        feed_is_stopped=is_stopped
        and visit.may("jobs.change_calendar", Scope.ADMIN, found.owner_id),
        admin_url=visit.admin_address("calendar_change", found.pk),
        add_url=visit.admin_address("window_add", calendar=found.pk)
        if visit.may("jobs.add_window", Scope.ADMIN, found.owner_id)
        else None,
    )


@page("calendars", permission="jobs.view_calendar")
def month_of(visit: Visit, kind: str, key: int) -> HttpResponse:
    """Show a month of all calendars that apply to an owner, a job or a target."""
    if kind not in SUBJECTS:
        raise not_found()
    path = "pk" if kind == "owner" else "owner"
    found: Any = visit.access.narrowed(SUBJECTS[kind]._default_manager.filter(pk=key), path=path)
    subject = found.first()
    if subject is None:
        raise not_found()
    with barrier.lifted():
        view = _asked_month(visit, subject, now=now())
    return visit.show(
        "jobs/pages/calendars/month_of.html",
        title=_("%s: month") % subject,
        subject=subject,
        kind=subject._meta.verbose_name,
        subject_url=row_address(visit, kind, key, slug=getattr(subject, "slug", "")),
        view=view,
        cells=_cells(view),
    )


def _asked_month(visit: Visit, subject: Any, *, now: Any) -> reads.View:
    """Return the month of a calendar, or of a row, that the address asks for."""
    query = visit.request.GET
    content = reads.content_of(subject, visit.access, zone=query.get("zone", ""))
    return reads.view_of(content, month=query.get("month", ""), now=now)


def _cells(view: reads.View) -> list[list[Cell]]:
    return [[cell_of(day, view.zone) for day in week] for week in view.weeks]


def cell_of(day: Day, zone: str) -> Cell:
    """Return the cell of a day."""
    by_look: dict[str, list[Mark]] = defaultdict(list)
    for mark in day.marks:
        by_look[mark.text.look].append(mark)
    lines = []
    if (windows := len(by_look["window"])) > WINDOWS:
        lines.append(("window", ngettext("%s window", "%s windows", windows) % number(windows)))
    for look, marks in (("asked", by_look["asked"]), ("freeze", by_look["freeze"])):
        lines += [(look, text) for text in _texts(look, marks, day, zone)]
    rails = [
        (look, month_layout.strips_of(_spans(by_look[look], day), day.whole))
        for look in ("asked", "freeze")
        if by_look[look]
    ]
    return Cell(day, rails, lines)


def _texts(look: str, marks: Sequence[Mark], day: Day, zone: str) -> list[str]:
    count = len(marks)
    if count <= LISTED:
        pieces = month_layout.each_piece_of(marks, day.whole, zone)
        return [f"{piece.hours} {piece.text.word} {piece.text.reason}".strip() for piece in pieces]
    if look == "freeze":
        return [ngettext("%s freeze", "%s freezes", count) % number(count)]
    return [ngettext("%s not approved", "%s not approved", count) % number(count)]


def _spans(marks: Sequence[Mark], day: Day) -> list[Span]:
    # In the order of their starts, as the marks are.
    cuts = (mark.span.clip(start=day.whole.start, end=day.whole.end) for mark in marks)
    return [cut for cut in cuts if cut.start < cut.end]


def _asked(found: Calendar) -> list[Window]:
    rows = to_be_approved(Window.objects.filter(calendar=found)).select_related(
        "calendar", "requested_by", "requested_by_token"
    )
    return list(rows.order_by("pk")[:ASKED])
