"""Submissions and their progress; their pages have the errors of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.actions.submissions import SUBMISSIONS
from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import OwnerFilter
from jobs.core.sql import now
from jobs.models import Submission
from jobs.models.access import access_of
from jobs.pages.kit import nav
from jobs.pages.kit.pieces import states_bar
from jobs.pages.submissions.submit import may_submit
from jobs.runs.reads.counts import states_by
from jobs.runs.reads.pace import pace_of


@admin.register(Submission)
class SubmissionAdmin(ActionAdmin, RecordAdmin):
    noun = SUBMISSIONS
    change_list_template = "admin/jobs/submission/change_list.html"
    list_display = ("name", "task_name", "progress", "owner_link", "submitted", "number")
    list_select_related = ("owner",)
    list_filter = (OwnerFilter,)
    list_per_page = 25
    search_fields = ("=id", "label__startswith")
    search_help_text = _("A submission's number, or the beginning of its label.")
    ordering = ("-id",)
    fields = (
        "label",
        "owner_link",
        "task_full",
        "queue",
        "submitted",
        "progress",
        "pace",
        "took",
        "runs",
    )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        url = nav.address("submit") if may_submit(access_of(request.user)) else None
        return super().changelist_view(request, {"submit_url": url, **(extra_context or {})})

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        counts = states_by("submission", [row.pk for row in rows])
        for row in rows:
            row.page_counts = None if counts is None else counts.get(row.pk, {})

    @html.column(_("label"))
    def name(self, submission: Submission) -> str:
        return str(submission)

    number = html.column_of(_("number"), "pk", int)
    task_full = html.column_of(_("task"), "task", html.code)

    @html.column(_("progress"))
    def progress(self, row: Any) -> str:
        """Show a bar of its runs; a link to them if the list had no time to count."""
        counts = row.page_counts if hasattr(row, "page_counts") else row.progress.counts
        if counts is None:
            return html.runs_link(_("see its runs"), submission=row.pk)
        bar = states_bar(counts, total=row.run_count)
        return format_html('<span class="fs-progress">{}</span>', bar)

    @html.column(_("ended"))
    def pace(self, submission: Submission) -> str:
        found = pace_of(submission, now=now())
        rate = f" · {found.rate}" if found.rate else ""
        return f"{found.percentage} ({found.ended:,} / {found.total:,}){rate}"

    @html.column(_("took"))
    def took(self, submission: Submission) -> str:
        found = pace_of(submission, now=now())
        if found.length is None:
            return html.NOTHING
        length = html.span(found.length)
        return length if found.ended == found.total else str(_("%s so far") % length)

    submitted = html.column_of(_("submitted"), "created_at", html.moment)
    runs = html.runs_of("submission")
