"""Owners: their share, their runs and their members; paused and resumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.owners import OwnerFilter
from jobs.actions.owners import OWNERS
from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.admin.kit.filters import declared
from jobs.core.states import ACTIVE, State
from jobs.models import Membership, Owner, Scope
from jobs.models.access import access_of
from jobs.owners.fair_queue import publish_settings_on_commit
from jobs.owners.limits import LIMITS
from jobs.owners.members import addable_users
from jobs.runs.reads.counts import states_by

COUNTED = {"page_active": ACTIVE, "page_others": frozenset({State.QUEUED, State.FAILED})}
"""States that are counted in one query, by the attribute of an owner that has the counts."""


class MembershipInline(admin.TabularInline):
    model = Membership
    extra = 0
    # Unless the admin of users, which is the project's, can search.
    raw_id_fields = ("user",)

    def get_autocomplete_fields(self, request: HttpRequest) -> tuple[str, ...]:
        users, site = get_user_model(), self.admin_site
        found = site.is_registered(users) and site.get_model_admin(users).get_search_fields(request)
        return ("user",) if found else ()

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user":
            # Django checks the list that it offers, not the number that a browser sends.
            kwargs["queryset"] = addable_users(request.user)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_add_permission(request, obj) and _edits(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _edits(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _edits(request, obj)


def _edits(request: HttpRequest, owner: Owner | None) -> bool:
    return access_of(request.user).has(Scope.ADMIN, owner.pk if owner else None)


@admin.register(Owner)
class OwnerAdmin(ActionAdmin):
    owner_path = "pk"
    noun = OWNERS
    inlines = (MembershipInline,)
    list_display = ("slug", "name", "pause", "weight", "running", "waiting", "failed", "zone")
    list_filter = declared(OwnerFilter, "paused")
    search_fields = ("slug", "name")
    search_help_text = _("A part of the slug or the name.")
    ordering = ("slug",)
    sortable_by = ("slug", "weight")
    fieldsets = (
        (None, {"fields": ("slug", "name", "zone")}),
        (_("Share and limit"), {"fields": ("weight", "max_running", "rate_limit_per_minute")}),
        (_("Objective"), {"fields": ("wait_objective_seconds", "wait_objective_percent")}),
        (_("History"), {"fields": ("run_days", "failed_run_days")}),
        (_("Now"), {"fields": ("pause", "running", "waiting", "failed")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        shown = ("pause", "running", "waiting", "failed")
        if obj is None:
            return shown
        # Lock keys and addresses contain the slug. A larger share takes from other owners, so only
        # superusers change it.
        return (*shown, "slug") if access_of(request.user).sees_all else (*shown, "slug", *LIMITS)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in LIMITS:
            # Without it Django's form field states only a lower limit, not that of the model.
            kwargs["min_value"] = None
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return super().has_add_permission(request, *args) and access_of(request.user).sees_all

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and access_of(request.user).sees_all

    def save_model(self, request: HttpRequest, obj: Owner, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        publish_settings_on_commit(obj)

    def delete_model(self, request: HttpRequest, obj: Owner) -> None:
        publish_settings_on_commit(obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        publish_settings_on_commit(*queryset)
        super().delete_queryset(request, queryset)

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        # In two queries: active runs are few, while a large backlog may take too long to count.
        for attribute in COUNTED:
            self._count_runs(rows, attribute)

    def _count_runs(self, rows: Sequence[Any], attribute: str) -> None:
        counts = states_by("owner", [row.pk for row in rows], states=COUNTED[attribute])
        for row in rows:
            setattr(row, attribute, None if counts is None else counts.get(row.pk, {}))

    @html.column(_("state"))
    def pause(self, owner: Owner) -> str:
        if not owner.is_paused():
            return html.badge(_("active"), "succeeded")
        until = html.moment(owner.paused_until) if owner.paused_until else _("until resumed")
        return format_html(
            '{} <span class="fs-note">{} {}</span>',
            html.badge(_("paused"), "held"),
            until,
            owner.paused_reason,
        )

    @html.column(_("running"))
    def running(self, owner: Owner) -> str:
        counts = self._counts(owner, "page_active")
        limit = f" / {owner.max_running}" if owner.max_running else ""
        text = _("many") if counts is None else f"{sum(counts.values()):,}{limit}"
        return html.runs_link(text, owner=owner.slug, state="active")

    @html.column(_("waiting"))
    def waiting(self, owner: Owner) -> str:
        return self._count(owner, State.QUEUED)

    @html.column(_("failed"))
    def failed(self, owner: Owner) -> str:
        return self._count(owner, State.FAILED)

    def _count(self, owner: Owner, state: State) -> str:
        counts = self._counts(owner, "page_others")
        text = _("many") if counts is None else f"{counts.get(state, 0):,}"
        return html.runs_link(text, owner=owner.slug, state=state)

    def _counts(self, owner: Owner, attribute: str) -> Any:
        if owner.pk is None:
            return {}
        if not hasattr(owner, attribute):
            self._count_runs([owner], attribute)
        return getattr(owner, attribute)
