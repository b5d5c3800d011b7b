"""Runs: found by indexed filters, shown from submit to end, cancelled and retried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.runs import RunFilter
from jobs.admin.kit import html
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import declared, linked
from jobs.admin.kit.verb_pages import VerbAdmin
from jobs.admin.kit.verbs import Act, Verb
from jobs.admin.runs.override import OVERRIDE
from jobs.admin.runs.run_task import FAIL, MOVE
from jobs.admin.runs.story import story_of
from jobs.core.language import in_language
from jobs.core.states import ENDED, REOPENABLE
from jobs.models import Job, Run, Submission, Target, Worker
from jobs.models.access import access_of
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs
from jobs.runs.reads.choices import word_of
from jobs.runs.reads.errors import message_of, shown
from jobs.runs.reads.search import HELP, search_runs


def _cancel(keys: Sequence[UUID], act: Act) -> int:
    return len(cancel_runs(keys, actor=None if act.is_bulk else act.actor, reason=act.reason))


def _retry(keys: Sequence[UUID], act: Act) -> int:
    return len(reopen_runs(keys, actor=None if act.is_bulk else act.actor, reason=act.reason))


CANCEL = Verb(
    name="cancel",
    label=_("Cancel"),
    permission="jobs.cancel_run",
    applies=lambda runs: runs.exclude(state__in=sorted(ENDED)).exclude(state="cancelling"),
    act=_cancel,
    done=_("cancelled"),
    refused=lambda run: _("This run is %s and cannot be cancelled.") % word_of(run.state),
    warning=_("Waiting runs never start. Runs that a worker has started are asked to stop."),
    audits_bulk=True,
)
RETRY = Verb(
    name="retry",
    label=_("Retry"),
    permission="jobs.retry_run",
    applies=lambda runs: runs.filter(state__in=sorted(REOPENABLE)),
    act=_retry,
    done=_("queued again"),
    refused=lambda run: _("This run is %s and cannot be retried.") % word_of(run.state),
    warning=_("It is queued again with a fresh set of attempts."),
    mark=lambda run: f"{run.state} {run.token}",
    audits_bulk=True,
)


@admin.register(Run)
class RunAdmin(VerbAdmin, RecordAdmin):
    verbs = (CANCEL, RETRY, OVERRIDE, MOVE, FAIL)
    change_form_template = "admin/jobs/run/change_form.html"

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
    # These may be long, and the list does not show them.
    list_defer = ("payload", "result", "checkpoint", "history", "policy", "options")
    list_per_page = 100
    search_fields = ("id",)
    search_help_text = HELP
    ordering = ("-id",)
    fields = ()

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_runs(queryset, search_term, user=request.user), False

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        for run in rows:
            run.shown_message = shown(message_of(run, access_of(request.user)))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        run: Any = kwargs.get("obj")
        story = story_of(run, access_of(request.user))
        context |= {"story": story, "title": _("Run"), "subtitle": None}
        return super().render_change_form(request, context, *args, **kwargs)

    state_mark = html.column_of(_("state"), "state", html.badge)
    id_link = html.column_of(_("id"), "id", html.short_identifier)
    target_name = html.column_of(_("target"), "target", html.link)

    @html.column(_("from"))
    def origin(self, run: Run) -> str:
        return html.link(run.submission or run.job)

    @html.column(_("attempts"))
    def tries(self, run: Run) -> str:
        return f"{run.attempt_number}/{run.last_attempt_number}"

    submitted = html.column_of(_("submitted"), "created_at", html.moment)

    @html.column(_("took"))
    def took(self, run: Run) -> str:
        if run.started_at is None or run.ended_at is None:
            return html.NOTHING
        return html.span(run.ended_at - run.started_at)

    @html.column(_("error"))
    def error(self, run: Any) -> str:
        return html.clipped(run.error_type.rpartition(".")[2], hint=in_language(run.shown_message))
