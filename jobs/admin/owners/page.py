"""Owners: their share and their members; paused and resumed. Their pages count their runs."""

from __future__ import annotations

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
from jobs.models import Membership, Owner, Scope
from jobs.models.access import access_of
from jobs.owners.fair_queue import publish_settings_on_commit
from jobs.owners.limits import LIMITS
from jobs.owners.members import addable_users


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
    list_display = ("slug", "name", "pause", "weight", "runs", "zone")
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
        (_("Now"), {"fields": ("pause", "runs")}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        shown = ("pause", "runs")
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

    runs = html.runs_of("owner", "slug")
