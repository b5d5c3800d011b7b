"""Missed spans: consecutive due times that were not run, and why. Read-only, newest first."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.jobs import MissedFilter
from jobs.admin.kit import html
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import declared, linked
from jobs.models import Job, Missed


@admin.register(Missed)
class MissedAdmin(RecordAdmin):
    list_display = ("span", "due_times", "why", "job_link", "owner_link", "recorded")
    list_display_links = ("span",)
    list_select_related = ("owner", "job")
    list_filter = (*declared(MissedFilter, "reason", "owner"), linked("job", Job))
    list_defer = ("job__payload",)
    ordering = ("-id",)
    fields = ("job_link", "owner_link", "first", "last", "due_times", "why", "recorded")

    @html.column(_("missed"))
    def span(self, missed: Missed) -> str:
        return html.between(missed.first_at, missed.last_at)

    first = html.column_of(_("first due"), "first_at", html.exact)
    last = html.column_of(_("last due"), "last_at", html.exact)
    due_times = html.column_of(_("due times"), "count", "{:,}".format)

    @html.column(_("reason"))
    def why(self, missed: Missed) -> str:
        return missed.get_reason_display()

    job_link = html.column_of(_("job"), "job", html.link)
    recorded = html.column_of(_("recorded"), "created_at", html.moment)
