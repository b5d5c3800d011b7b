"""Workers: which are alive, what each can run, and how many runs it has now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.workers import WorkerFilter
from jobs.admin.kit import html
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import declared
from jobs.core.conf import setting
from jobs.core.sql import now
from jobs.models import Run, Worker
from jobs.models.access import access_of


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

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        # Only runs of the person's own owners are counted.
        mine = access_of(request.user).narrowed(Run.objects.active())
        held = mine.filter(worker__in=[row.pk for row in rows]).order_by()
        counts = dict(held.values_list("worker_id").annotate(count=Count("*")))
        at = now()
        for row in rows:
            row.page_held = counts.get(row.pk, 0)
            # Both times are from PostgreSQL's clock.
            row.page_silence = at - row.heartbeat_at

    @html.column(_("state"))
    def life(self, worker: Any) -> str:
        if worker.stopped_at is not None:
            return html.badge(_("stopped"), "cancelled")
        lease = timedelta(seconds=setting("LEASE_SECONDS"))
        if worker.page_silence > lease:
            return html.badge(_("lost"), "failed")
        if worker.draining_since is not None:
            return html.badge(_("draining"), "held")
        if not worker.queues:
            text = _("no process") if worker.slots == 0 else _("consumes no queue")
            return html.badge(text, "failed")
        if worker.lacks_redis:
            return html.badge(_("cannot use Redis"), "failed")
        return html.badge(_("alive"), "succeeded")

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
