"""API tokens: listed, and revoked."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.actions.tokens import TOKENS
from jobs.admin.kit import html
from jobs.admin.kit.actions import CreatedOnPage
from jobs.admin.kit.base import RecordAdmin
from jobs.core.sql import now
from jobs.models import ApiToken


@admin.register(ApiToken)
class TokenAdmin(CreatedOnPage, RecordAdmin):
    noun = TOKENS
    list_display = ("name", "prefix", "owner_link", "scope_list", "state", "last_used_at")
    list_select_related = ("owner",)
    search_fields = ("prefix",)
    search_help_text = lazy("The beginning of a prefix.")
    fields = (
        *("owner", "name", "prefix", "scope_list", "state"),
        *("created_by", "created_at", "expires_at", "last_used_at"),
    )

    @html.column(lazy("scopes"))
    def scope_list(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @html.column(lazy("state"))
    def state(self, token: ApiToken) -> str:
        if token.revoked_at is not None:
            return html.badge(_("revoked"), "cancelled")
        if token.expires_at is not None and token.expires_at <= now():
            return html.badge(_("expired"), "expired")
        return html.badge(_("usable"), "succeeded")
