"""The audit: who did what, to which object, and why. Read-only."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.owners import AuditFilter
from jobs.admin.kit import html
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import declared
from jobs.models import AuditEntry
from jobs.runs.reads.story import as_json


@admin.register(AuditEntry)
class AuditEntryAdmin(RecordAdmin):
    list_display = ("when", "actor_name", "action", "subject", "owner_link", "reason")
    list_select_related = ("owner",)
    list_filter = declared(AuditFilter, "action", "owner")
    search_fields = ("=object_id", "=actor_name")
    search_help_text = _("The id of the object, or a person's name.")
    ordering = ("-id",)
    fields = (
        "when_exactly",
        "actor_name",
        "action",
        "subject",
        "owner_link",
        "reason",
        "facts",
        "database_role",
    )

    when = html.column_of(_("when"), "at", html.moment)
    when_exactly = html.column_of(_("when"), "at", html.exact)

    @html.column(_("on"))
    def subject(self, entry: AuditEntry) -> str:
        text = f"{entry.object_type} {entry.object_id}"
        try:
            model = apps.get_model("jobs", entry.object_type)
        except LookupError:
            return text
        address = reverse(f"admin:jobs_{model._meta.model_name}_change", args=[entry.object_id])
        return format_html('<a href="{}">{}</a>', address, text)

    @html.column(_("details"))
    def facts(self, entry: AuditEntry) -> str:
        return format_html("<pre>{}</pre>", as_json(entry.details))
