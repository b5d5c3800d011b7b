"""Workers: which are alive, what each can run, and how many runs it has now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.workers import STATES, WorkerFilter
from jobs.admin.kit import html
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import declared
from jobs.core.language import in_language
from jobs.models import Worker
from jobs.models.access import access_of
from jobs.runs.reads.workers import active_counts, state_of, with_state

LOOKS: Final = {
    "alive": "succeeded",
    "draining": "held",
    "idle": "failed",
    "lost": "failed",
    "stopped": "cancelled",
}
"""The badge of each state is that of a run's state."""


@admin.register(Worker)
class WorkerAdmin(RecordAdmin):
    owner_path = None
    completes_object = True
    list_display = (
        "hostname",
        "life",
        "heartbeat",
        "held",
        "pool",
        "queue_names",
        "version",
        "started",
    )
    list_filter = declared(WorkerFilter, "state")
    search_fields = ("hostname__startswith",)
    search_help_text = _("The beginning of the node name.")
    ordering = ("-started_at",)
    fields = (
        "id",
        "hostname",
        "life",
        "heartbeat",
        "held",
        "pid",
        "pool",
        "queue_names",
        "task_names",
        "version",
        "clock_ahead_seconds",
        "redis_answered",
        "started",
        "stopped",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_state(super().get_queryset(request))

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        counts = active_counts(access_of(request.user), [row.pk for row in rows])
        for row in rows:
            row.page_held = counts.get(row.pk, 0)

    @html.column(_("state"))
    def life(self, worker: Any) -> str:
        state = state_of(worker)
        word = in_language(worker.why_idle()) if state == "idle" else STATES[state]
        return html.badge(word, LOOKS[state])

    heartbeat = html.column_of(_("last heartbeat"), "heartbeat_at", html.moment)

    @html.column(_("runs / slots"))
    def held(self, worker: Any) -> str:
        text = f"{worker.page_held} / {worker.slots}"
        return html.runs_link(text, worker=worker.pk, state="active")

    queue_names = html.column_of(_("queues"), "queues", ", ".join)

    @html.column(_("tasks"))
    def task_names(self, worker: Worker) -> str:
        return html.NOTHING if worker.tasks is None else ", ".join(worker.tasks)

    redis_answered = html.column_of(_("last answer of Redis"), "redis_answered_at", html.moment)
    started = html.column_of(_("started"), "started_at", html.moment)
    stopped = html.column_of(_("stopped"), "stopped_at", html.moment)
