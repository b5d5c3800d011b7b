"""The scheduler: one row that says whether what is due is triggered. Read only."""

# ruff: noqa: ARG002  Django's signatures

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit import html
from jobs.admin.kit.base import RecordAdmin
from jobs.core.counting import capped_count
from jobs.core.sql import now
from jobs.models import Cursor, Job, Leader, Tick
from jobs.recurring.health import LATE_SLOTS, late_spans
from jobs.schedules import moment_of
from jobs.schedules.phases import SLOT

SILENT: Final = timedelta(seconds=10)
"""A pulse comes each second; who has not beaten for so long does not."""


@admin.register(Cursor)
class SchedulerAdmin(RecordAdmin):
    owner_path = None
    list_display = ("verdict", "pulse", "until", "open_ticks", "behind", "leader")
    list_display_links = None
    sortable_by = ()
    fields = list_display
    readonly_fields = list_display

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        for row in rows:
            self._gather(row)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            self._gather(row)
        return row

    def _gather(self, cursor: Cursor) -> None:
        """Attach what the columns tell: the open ticks, what is late, and who leads the beats.

        By PostgreSQL's clock, which wrote all of it.
        """
        shown: Any = cursor
        at = now()
        shown.page_silence = at - cursor.beat_at
        shown.page_ticks = capped_count(Tick.objects.filter(done_at__isnull=True))
        spans = late_spans(now=at)
        first = min((span.first_slot for span in spans), default=None)
        shown.page_behind = None if first is None else at - moment_of(first)
        shown.page_leader = Leader.objects.filter(until__gt=at).order_by("name").first()

    @html.column(_("state"))
    def verdict(self, cursor: Any) -> str:
        if cursor.page_silence > SILENT:
            return html.badge(_("silent: no beat, or no system worker"), "failed")
        if cursor.page_behind is not None:
            return html.badge(_("behind: ticks are not done"), "expired")
        return html.badge(_("healthy"), "succeeded")

    @html.column(_("last pulse"))
    def pulse(self, cursor: Cursor) -> str:
        return html.moment(cursor.beat_at)

    @html.column(_("handed out until"))
    def until(self, cursor: Cursor) -> str:
        return html.exact(moment_of(cursor.slot))

    @html.column(_("open ticks"))
    def open_ticks(self, cursor: Any) -> str:
        return str(cursor.page_ticks)

    @html.column(_("behind by"))
    def behind(self, cursor: Any) -> str:
        if cursor.page_behind is None:
            return _("less than %s") % html.span(LATE_SLOTS * SLOT).removesuffix(" 0 s")
        return html.list_link(Job, html.span(cursor.page_behind), health="late")

    @html.column(_("leading beat"))
    def leader(self, cursor: Any) -> str:
        leader = cursor.page_leader
        return html.NOTHING if leader is None else leader.holder
