"""Runs: found by what an index answers, told from submit to end, cancelled and retried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.admin import marks
from jobs.admin.base import RecordAdmin
from jobs.admin.filters import AgeFilter, OwnerFilter, StateFilter, linked
from jobs.admin.override import OVERRIDE
from jobs.admin.run_task import FAIL, MOVE
from jobs.admin.searching import HELP, search_runs
from jobs.admin.story import story_of
from jobs.admin.verbal import VerbalAdmin
from jobs.admin.verbs import Act, Verb
from jobs.cancellation import cancel_runs
from jobs.models import Job, Run, Submission, Target, Worker
from jobs.reopening import reopen_runs
from jobs.states import ENDED, REOPENABLE


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
    refused=lambda run: _("This run is %s and cannot be cancelled.") % run.state,
    warning=_("What waits never starts. What a worker has started is asked to stop."),
    audits_bulk=True,
)
RETRY = Verb(
    name="retry",
    label=_("Retry"),
    permission="jobs.retry_run",
    applies=lambda runs: runs.filter(state__in=sorted(REOPENABLE)),
    act=_retry,
    done=_("queued again"),
    refused=lambda run: _("This run is %s and cannot be retried.") % run.state,
    warning=_("It is queued again with a fresh set of attempts."),
    mark=lambda run: f"{run.state} {run.token}",
    audits_bulk=True,
)


@admin.register(Run)
class RunAdmin(VerbalAdmin, RecordAdmin):
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
        StateFilter,
        AgeFilter,
        OwnerFilter,
        linked("submission", Submission),
        linked("job", Job),
        linked("target", Target),
        linked("worker", Worker),
    )
    # Arguments, results and history may be long, and no list shows them.
    list_defer = ("payload", "result", "history", "policy", "options")
    list_per_page = 100
    search_fields = ("id",)
    search_help_text = HELP
    ordering = ("-id",)
    sortable_by = ()
    fields = ()

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_runs(queryset, search_term, user=request.user), False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        run: Any = kwargs.get("obj")
        may_see_arguments = request.user.has_perm("jobs.view_arguments")
        context["story"] = story_of(run, with_arguments=may_see_arguments)
        context |= {"title": _("Run"), "subtitle": None}
        return super().render_change_form(request, context, *args, **kwargs)

    @marks.column(_("state"))
    def state_mark(self, run: Run) -> str:
        return marks.badge(run.state)

    @marks.column(_("id"))
    def id_link(self, run: Run) -> str:
        return marks.short_identifier(run.id)

    @marks.column(_("task"))
    def task_name(self, run: Run) -> str:
        return marks.task(run.task)

    @marks.column(_("owner"))
    def owner_link(self, run: Run) -> str:
        return marks.link(run.owner)

    @marks.column(_("target"))
    def target_name(self, run: Run) -> str:
        return marks.link(run.target)

    @marks.column(_("from"))
    def origin(self, run: Run) -> str:
        return marks.link(run.submission or run.job)

    @marks.column(_("attempts"))
    def tries(self, run: Run) -> str:
        return f"{run.attempt_number}/{run.last_attempt_number}"

    @marks.column(_("submitted"))
    def submitted(self, run: Run) -> str:
        return marks.moment(run.created_at)

    @marks.column(_("took"))
    def took(self, run: Run) -> str:
        if run.started_at is None or run.ended_at is None:
            return marks.NOTHING
        return marks.span(run.ended_at - run.started_at)

    @marks.column(_("error"))
    def error(self, run: Run) -> str:
        return marks.clipped(run.error_type.rpartition(".")[2], hint=run.error_message)
