"""Jobs: made from the tasks on offer, run by hand, paused; their last results at a glance."""

# ruff: noqa: ARG002  Django's signatures

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs import idempotency
from jobs.admin import marks
from jobs.admin.filters import OwnerFilter
from jobs.admin.job_form import POLICY_FIELDS, JobForm, stored_arguments
from jobs.admin.page_counts import last_results
from jobs.admin.verbal import VerbalAdmin
from jobs.admin.verbs import Act, CertainUntilForm, Verb, always
from jobs.models import AuditEntry, IdempotencyKey, Job, Run
from jobs.payloads import open_bytes
from jobs.submission import run_job


def _run_now(keys: Sequence[int], act: Act) -> int:
    jobs = Job.objects.select_related("owner").filter(pk__in=keys, enabled=True)
    return sum(_run_once(job, act) is not None for job in jobs)


def _run_once(job: Job, act: Act) -> Run | None:
    """Run a job now; None when this very form has done so before."""
    with transaction.atomic():
        payload = open_bytes(job.payload, key=job.payload_key)
        claim = idempotency.claim(job.owner, _key(job, act), job.task, [payload])
        if claim is None or claim.run_id is not None:
            return None
        run = run_job(job)
        claim.keep(run_id=run.id)
        AuditEntry.write("run now", on=job, actor=act.actor, reason=act.reason, run=str(run.id))
        return run


def _key(job: Job, act: Act) -> str:
    return f"admin:{act.nonce}:{job.pk}"


def _link_to_run(job: Job, act: Act) -> Any:
    made = IdempotencyKey.objects.get(owner=job.owner, key=_key(job, act))
    run = Run.objects.get(id=str(made.run_id))
    return format_html("{} {}", _("Submitted as run"), marks.link(run))


def _pause(keys: Sequence[int], act: Act) -> int:
    return _set_pause(keys, act, action="pause", until=act.data["until"])


def _resume(keys: Sequence[int], act: Act) -> int:
    return _set_pause(keys, act, action="resume", until=None)


def _set_pause(keys: Sequence[int], act: Act, *, action: str, until: datetime | None) -> int:
    with transaction.atomic():
        jobs = list(Job.objects.select_for_update().filter(pk__in=keys).order_by("pk"))
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(
            paused_until=until, changed_at=Now()
        )
        for job in jobs:
            AuditEntry.write(
                action,
                on=job,
                actor=act.actor,
                reason=act.reason,
                until=until and until.isoformat(),
            )
    return len(jobs)


RUN_NOW = Verb(
    name="run_now",
    label=_("Run now"),
    permission="jobs.run_job",
    applies=lambda jobs: jobs.filter(enabled=True),
    act=_run_now,
    done=_("submitted"),
    refused=always(_("This job is not enabled, or this form has run it already.")),
    warning=_("One run is submitted; it obeys the owner's limits and the job's lock."),
    message=_link_to_run,
)
PAUSE = Verb(
    name="pause",
    label=_("Pause"),
    permission="jobs.pause_job",
    applies=lambda jobs: jobs,
    act=_pause,
    done=_("paused"),
    refused=always(_("This job cannot be paused.")),
    warning=_("Its schedule makes no runs until then. It can still be run by hand."),
    form=CertainUntilForm,
)


def _paused(jobs: QuerySet[Any]) -> QuerySet[Any]:
    return jobs.filter(paused_until__gt=Now())


RESUME = Verb(
    name="resume",
    label=_("Resume"),
    permission="jobs.pause_job",
    applies=_paused,
    act=_resume,
    done=_("resumed"),
    refused=always(_("This job is not paused.")),
)


class EnabledFilter(admin.SimpleListFilter):
    title = _("enabled")
    parameter_name = "enabled"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("yes")), ("no", _("no"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(enabled=value == "yes") if value in ("yes", "no") else queryset


@admin.register(Job)
class JobAdmin(VerbalAdmin):
    form = JobForm
    verbs = (RUN_NOW, PAUSE, RESUME)
    list_display = ("title", "life", "owner_link", "results", "task_name", "target_link")
    list_display_links = ("title",)
    list_select_related = ("owner", "target")
    list_filter = (EnabledFilter, OwnerFilter)
    list_defer = ("payload",)
    search_fields = ("key__startswith", "name__istartswith")
    search_help_text = _("How the key or the name begins.")
    ordering = ("owner__slug", "key")
    sortable_by = ()
    autocomplete_fields = ("owner", "target")
    fieldsets = (
        (None, {"fields": ("owner", "key", "name", "enabled", "life", "results")}),
        (_("What it does"), {"fields": ("task", "arguments", "target", "labels")}),
        (
            _("How it runs"),
            {
                "fields": ("queue", *POLICY_FIELDS, "lock_key"),
                "description": _("What is left empty is as the task says, then as the settings."),
                "classes": ("collapse",),
            },
        ),
    )

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.may_see_arguments = self._may_see_arguments(request)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the stored arguments where there is no form to hold them."""
        sets = super().get_fieldsets(request, obj)
        if obj is None:
            return [(None, {"fields": ("owner", "key", "name", "enabled")}), *sets[1:]]
        if self.has_change_permission(request, obj):
            return sets
        shown = "stored" if self._may_see_arguments(request) else "hidden_arguments"
        return [
            (name, {**options, "fields": [shown if f == "arguments" else f for f in fields]})
            for name, options in sets
            for fields in [options["fields"]]
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        shown = ["life", "results", "stored", "hidden_arguments"]
        # Runs, targets and locks of one owner do not go over to another.
        return [*shown, "owner", "key"] if obj else shown

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        results = last_results([row.pk for row in rows])
        for row in rows:
            row.page_results = results.get(row.pk, [])

    def _may_see_arguments(self, request: HttpRequest) -> bool:
        user: Any = request.user
        return bool(user.has_perm("jobs.view_arguments"))

    @marks.column(_("job"))
    def title(self, job: Job) -> str:
        return str(job)

    @marks.column(_("state"))
    def life(self, job: Job) -> str:
        if job.pk is None:
            return marks.NOTHING
        if not job.enabled:
            return marks.badge(_("disabled"), "cancelled")
        if job.paused_until is not None and job.paused_until > timezone.now():
            until = marks.moment(job.paused_until)
            return format_html("{} {}", marks.badge(_("paused"), "held"), until)
        return marks.badge(_("enabled"), "succeeded")

    @marks.column(_("owner"))
    def owner_link(self, job: Job) -> str:
        return marks.link(job.owner)

    @marks.column(_("task"))
    def task_name(self, job: Job) -> str:
        return marks.task(job.task)

    @marks.column(_("target"))
    def target_link(self, job: Job) -> str:
        return marks.link(job.target)

    @marks.column(_("last results"))
    def results(self, job: Job) -> str:
        if job.pk is None:
            return marks.NOTHING
        found = getattr(job, "page_results", None)
        if found is None:
            found = last_results([job.pk]).get(job.pk, [])
        more = marks.runs_link(_("all"), job=job.pk) if found else ""
        return format_html("{} {}", marks.strip(found), more)

    @marks.column(_("arguments"))
    def stored(self, job: Job) -> str:
        return format_html("<pre>{}</pre>", stored_arguments(job))

    @marks.column(_("arguments"))
    def hidden_arguments(self, job: Job) -> Any:
        return _("Hidden: you need the permission “Can see the arguments and the result of a run”.")
