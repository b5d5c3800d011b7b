"""The scheduler: one row that says whether due jobs are triggered. Read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from jobs.system.state import SILENT


@admin.register(Cursor)
class SchedulerAdmin(RecordAdmin):
    owner_path = None
    completes_object = True
    list_display = ("verdict", "pulse", "until", "open_ticks", "behind", "leader")
    list_display_links = None
    fields = list_display

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        # All times in these rows are from PostgreSQL's clock.
        at = now()
        for row in rows:
            row.page_silence = at - row.beat_at
            row.page_ticks = capped_count(Tick.objects.filter(done_at__isnull=True))
            first = min((span.first_slot for span in late_spans(now=at)), default=None)
            row.page_behind = None if first is None else at - moment_of(first)
            row.page_leader = Leader.objects.filter(until__gt=at).order_by("name").first()

    @html.column(_("state"))
    def verdict(self, cursor: Any) -> str:
        if cursor.page_silence > SILENT:
            return html.badge(_("silent: no beat, or no system worker"), "failed")
        if cursor.page_behind is not None:
            return html.badge(_("behind: ticks are not done"), "expired")
        return html.badge(_("healthy"), "succeeded")

    pulse = html.column_of(_("last pulse"), "beat_at", html.moment)

    @html.column(_("handed out until"))
    def until(self, cursor: Cursor) -> str:
        return html.exact(moment_of(cursor.slot))

    open_ticks = html.column_of(_("open ticks"), "page_ticks", str)

    @html.column(_("behind by"))
    def behind(self, cursor: Any) -> str:
        if cursor.page_behind is None:
            return _("less than %s") % html.span(LATE_SLOTS * SLOT).removesuffix(" 0 s")
        return html.list_link(Job, html.span(cursor.page_behind), health="late")

    @html.column(_("leading beat"))
    def leader(self, cursor: Any) -> str:
        leader = cursor.page_leader
        return html.NOTHING if leader is None else leader.holder
