"""Runs, read-only: found by indexed filters. Their pages outside the admin have the timelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.runs import RunFilter
from jobs.actions.runs import RUNS
from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import declared, linked
from jobs.core.language import in_language
from jobs.models import Job, Run, Submission, Target, Worker
from jobs.models.access import access_of
from jobs.runs.reads.errors import message_of, shown
from jobs.runs.reads.listing import UNLISTED
from jobs.runs.reads.search import HELP, search_runs


@admin.register(Run)
class RunAdmin(ActionAdmin, RecordAdmin):
    noun = RUNS
    completes_object = True

    list_display = (
        "state_mark",
        "task_name",
        "origin",
        "owner_link",
        "target_name",
        "error",
        "submitted",
        "took",
        "tries",
        "id_link",
    )
    list_display_links = ("task_name", "id_link")
    list_select_related = ("owner", "target", "submission", "job")
    list_filter = (
        *declared(RunFilter, "state", "age", "owner"),
        linked("submission", Submission),
        linked("job", Job),
        linked("target", Target),
        linked("worker", Worker),
    )
    list_defer = UNLISTED
    list_per_page = 100
    search_fields = ("id",)
    search_help_text = HELP
    ordering = ("-id",)
    fields = (
        *("state_mark", "why", "owner_link", "task", "target_name", "job_link", "submission_link"),
        *("worker_link", "tries", "queue", "priority", "lock", "label_pairs", "policy_pairs"),
        *("window_policy", "created_at", "due_at", "deadline_at", "started_at", "ended_at"),
        *("error_type", "message"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_runs(queryset, search_term, user=request.user), False

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        for run in rows:
            run.shown_message = shown(message_of(run, access_of(request.user)))

    state_mark = html.column_of(_("state"), "state", html.badge)
    id_link = html.column_of(_("id"), "id", html.short_identifier)
    target_name = html.column_of(_("target"), "target", html.link)

    @html.column(_("from"))
    def origin(self, run: Run) -> str:
        return html.link(run.submission or run.job)

    @html.column(_("attempts"))
    def tries(self, run: Run) -> str:
        return f"{run.attempt_number}/{run.last_attempt_number}"

    job_link = html.column_of(_("job"), "job", html.link)
    submission_link = html.column_of(_("submission"), "submission", html.link)
    worker_link = html.column_of(_("worker"), "worker", html.link)
    label_pairs = html.column_of(_("labels"), "labels", html.pairs)
    policy_pairs = html.column_of(_("policy"), "policy", html.pairs)
    message = html.column_of(_("error message"), "shown_message", in_language)

    @html.column(_("waits because"))
    def why(self, run: Run) -> Any:
        return in_language(run.why_waiting()) or html.NOTHING

    @html.column(_("lock"))
    def lock(self, run: Run) -> str:
        return html.code(run.lock_key.partition(":")[2])

    submitted = html.column_of(_("submitted"), "created_at", html.moment)

    @html.column(_("took"))
    def took(self, run: Run) -> str:
        if run.started_at is None or run.ended_at is None:
            return html.NOTHING
        return html.span(run.ended_at - run.started_at)

    @html.column(_("error"))
    def error(self, run: Any) -> str:
        return html.clipped(run.error_type.rpartition(".")[2], hint=in_language(run.shown_message))
