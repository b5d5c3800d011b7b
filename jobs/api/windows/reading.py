"""Windows and freezes: list, get, their next occurrences, and the decisions on them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Query, Schema
from pydantic import Field

from jobs.actions import find
from jobs.actions.filters.calendars import WindowFilter
from jobs.actions.windows import WINDOWS
from jobs.api.calendars.openings import Openings
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf, newest_first
from jobs.api.windows.router import router
from jobs.api.windows.schemas import DecisionDetails, WindowDetails
from jobs.calendars.hours import safe_entry_of
from jobs.calendars.reads.occurrence_list import next_occurrences
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Scope, Window
from jobs.windows import notes

READS = needs(Scope.READ, "jobs.view_window")
_ETAG: Final = (
    *("pk", "revision", "effect", "starts", "duration_seconds", "zone", "rule", "excluded"),
    *("added", "valid_from", "valid_until", "reason"),
)


class WindowOccurrence(Schema):
    """An occurrence; `starts_at` is later than `occurrence_at` if only a part is valid."""

    occurrence_at: datetime = Field(
        description="Its original start; decisions refer to it by this time."
    )
    starts_at: datetime
    ends_at: datetime
    counts: bool = Field(description="It is approved, or needs no approval.")
    note: str = Field(description="Says what a change of the clocks does to it; else empty.")


class WindowOccurrences(Schema):
    """The next occurrences, up to eight years ahead."""

    items: list[WindowOccurrence]


@router.get("", auth=READS, response=PageOf[WindowDetails], operation_id="list_windows")
def list_windows(
    request: HttpRequest, filters: Query[WindowFilter], page: Page
) -> PageOf[WindowDetails]:
    """Return windows and freezes, newest first."""
    access = caller(request)
    rows = WINDOWS.seen_by(access).select_related(None).prefetch_related(None).only("pk")
    rows = filters.narrow(rows, access=access)
    cursor = Cursor.read(request, page, of="windows", filters=filters)
    found, following = cursor.newest_first(rows)
    return PageOf[WindowDetails](items=described([one.pk for one in found]), next=following)


@router.get("/{int:window_id}", auth=READS, response=WindowDetails, operation_id="get_window")
def get_window(request: HttpRequest, response: HttpResponse, window_id: int) -> Any:
    """Return one window or freeze. Its ETag changes with its fields and with each decision."""
    window = find_window(request, window_id)
    return unchanged(request, response, etag_of_window(window)) or described([window.pk])[0]


@router.get(
    "/{int:window_id}/occurrences",
    auth=READS,
    response=WindowOccurrences,
    operation_id="get_occurrences",
)
def get_occurrences(request: HttpRequest, window_id: int, query: Openings) -> WindowOccurrences:
    """Return the next occurrences of a window or freeze, approved or not."""
    entry = safe_entry_of(find_window(request, window_id))
    found = next_occurrences(entry, after=query.start, count=query.count)
    return WindowOccurrences(
        items=[
            WindowOccurrence(
                occurrence_at=one.start,
                starts_at=one.span.start,
                ends_at=one.span.end,
                counts=one.counts,
                note=notes(entry, one.span),
            )
            for one in found
        ]
    )


@router.get(
    "/{int:window_id}/decisions",
    auth=READS,
    response=PageOf[DecisionDetails],
    operation_id="list_decisions",
)
def list_decisions(request: HttpRequest, window_id: int, page: Page) -> PageOf[DecisionDetails]:
    """Return the decisions on a window, newest first. Those on earlier revisions do not count."""
    rows = find_window(request, window_id).decisions.all()
    return newest_first(request, page, rows, DecisionDetails.of, of="decisions", filters=window_id)


def find_window(request: HttpRequest, window_id: int) -> Window:
    """Return a window that the caller sees, with its calendar; raise NotFound if there is none."""
    found: Window = find(WINDOWS, window_id, by=caller(request))
    return found


def described(keys: list[int]) -> list[WindowDetails]:
    """Return details of windows that the caller may see, newest first."""
    # Behind the barrier the names of users could not be read.
    with barrier.lifted():
        rows = Window.objects.filter(pk__in=keys).select_related(
            "calendar__owner", "requested_by", "requested_by_token"
        )
        moment = now()
        found = rows.prefetch_related("decisions").order_by("-pk")
        return [WindowDetails.of(one, now=moment) for one in found]


def etag_of_window(window: Window) -> str:
    """Return the ETag of a window and the newest decision on it."""
    newest = window.decisions.order_by("-pk").values_list("pk", flat=True).first()
    return etag_of(newest, *(getattr(window, name) for name in _ETAG))
