"""Jobs: made from offered tasks, run by hand, paused; their pages have the last results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.jobs import JobFilter
from jobs.actions.jobs import JOBS
from jobs.admin.jobs.file_import import JobImportAdmin
from jobs.admin.jobs.form import (
    HISTORY_FIELDS,
    KINDS_OF,
    MISFIRE_FIELDS,
    POLICY_FIELDS,
    JobForm,
    stored_arguments,
)
from jobs.admin.jobs.preview import preview
from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.admin.kit.base import with_fields
from jobs.admin.kit.filters import declared
from jobs.core.errors import ScheduleError
from jobs.core.language import in_language
from jobs.definitions.fields import SCHEDULE
from jobs.definitions.periodic_tasks import sync_after_commit
from jobs.definitions.upsert import remove
from jobs.models import Job, Missed, ScheduleKind
from jobs.recurring import timetable
from jobs.recurring.timetable import Life
from jobs.runs.reads.errors import HIDDEN
from jobs.runs.reads.search import search_beginnings
from jobs.schedules import in_words

LIVES: Final = {
    Life.ENABLED: (_("enabled"), "succeeded"),
    Life.DISABLED: (_("disabled"), "cancelled"),
    Life.PAUSED: (_("paused"), "held"),
    Life.BROKEN: (_("broken"), "failed"),
}
"""The word and the colour of each state of a job."""
EMPTY_WHEN_NEW = ("life", "runs", "missed_spans")
"""Columns that have nothing to show for a job that is not saved yet."""


@admin.register(Job)
class JobAdmin(JobImportAdmin, ActionAdmin):
    form = JobForm
    noun = JOBS
    list_display = (
        "title",
        "life",
        "task_name",
        "due",
        "runs",
        "words",
        "owner_link",
        "target_link",
    )
    list_display_links = ("title",)
    list_select_related = ("owner", "target")
    list_filter = declared(JobFilter, "health", "schedule", "task", "enabled", "owner")
    list_defer = ("payload",)
    search_fields = ("key", "name")
    search_help_text = _("The beginning of the key or the name.")
    # The order of an index, so owners are in the order of their keys.
    ordering = ("owner_id", "key")
    autocomplete_fields = ("owner", "target")
    fieldsets = (
        (None, {"fields": ("owner", "key", "name", "enabled", "life", "runs")}),
        (_("What it does"), {"fields": ("task", "arguments", "target", "labels")}),
        (_("When it runs"), {"fields": (*SCHEDULE, "timetable")}),
        (_("When it was missed"), {"fields": (*MISFIRE_FIELDS, "missed_spans")}),
        (_("Overlap and history"), {"fields": HISTORY_FIELDS}),
        (
            _("How it runs"),
            {
                "fields": ("queue", *POLICY_FIELDS, "lock_key"),
                "description": _("An empty field has the task's value, else that of the settings."),
                "classes": ("collapse",),
            },
        ),
    )

    class Media:
        js = ("jobs/live_preview.js", "jobs/job_schedule.js")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.preview)
        return [path("preview/", view, name="jobs_job_preview"), *super().get_urls()]

    def preview(self, request: HttpRequest) -> HttpResponse:
        """Show what the schedule in a form means, before it is saved."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return preview(request, jobs=self.get_queryset(request))

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, *args, **kwargs)
        form.may_see_arguments = request.user.has_perm("jobs.view_arguments")
        return form

    def save_model(self, request: HttpRequest, obj: Job, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if ScheduleKind.SECONDS in (obj.schedule, form.initial.get("schedule")):
            sync_after_commit([obj.pk])

    def delete_model(self, request: HttpRequest, obj: Job) -> None:
        self.delete_queryset(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Iterable[Job]) -> None:
        """Delete jobs as everywhere else; the admin has audited them itself."""
        user: Any = request.user
        with transaction.atomic():
            remove(((job.owner_id, job.key) for job in queryset), actor=user)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the stored arguments as text to a person who may not change the job."""
        sets = super().get_fieldsets(request, obj)
        if obj is None:
            return with_fields(sets, dict.fromkeys(EMPTY_WHEN_NEW))
        if self.has_change_permission(request, obj):
            return sets
        may_see = request.user.has_perm("jobs.view_arguments")
        return with_fields(sets, {"arguments": "stored" if may_see else "hidden_arguments"})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        shown = ["life", "runs", "timetable", "missed_spans", "stored", "hidden_arguments"]
        # A job's runs, target and lock belong to its owner, so the owner stays.
        return [*shown, "owner", "key"] if obj else shown

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_beginnings(queryset, search_term, exact="key", any_case="name"), False

    @html.column(_("job"))
    def title(self, job: Job) -> str:
        return str(job)

    @html.column(_("state"))
    def life(self, job: Job) -> str:
        badge = html.badge(*LIVES[life := timetable.life_of(job, now=timezone.now())])
        until = html.moment(job.paused_until) if life is Life.PAUSED else ""
        return format_html("{} {}", badge, until)

    target_link = html.column_of(_("target"), "target", html.link)
    runs = html.runs_of("job")

    @html.column(_("schedule"))
    def words(self, job: Job) -> str:
        try:
            return str(in_language(in_words(timetable.of_job(job))))
        except ScheduleError as error:
            problem = timetable.problem_of(error)
            return html.clipped(problem, hint=problem)

    @html.column(_("next due"))
    def due(self, job: Job) -> str:
        try:
            return html.moment(timetable.next_due(job, now=timezone.now()))
        except ScheduleError:
            return html.NOTHING

    @html.column(_("next times"))
    def timetable(self, job: Job) -> str:
        found = timetable.timetable_of_job(job, now=timezone.now()) if job.pk else None
        address = reverse("admin:jobs_job_preview", query={"job": job.pk} if job.pk else None)
        context = {"timetable": found, "address": address, "kinds": KINDS_OF}
        return render_to_string("admin/jobs/job/preview.html", context)

    @html.column(_("missed spans"))
    def missed_spans(self, job: Job) -> str:
        return html.list_link(Missed, _("all missed spans"), job=job.pk)

    @html.column(_("arguments"))
    def stored(self, job: Job) -> str:
        return format_html("<pre>{}</pre>", stored_arguments(job))

    @html.column(_("arguments"))
    def hidden_arguments(self, job: Job) -> Any:
        return in_language(HIDDEN)
