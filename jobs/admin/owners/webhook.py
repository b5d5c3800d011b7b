"""Webhooks and mail subscriptions: read, and acted on."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.actions.mail_subscriptions import MAIL_SUBSCRIPTIONS
from jobs.actions.webhooks import WEBHOOKS
from jobs.admin.kit import html
from jobs.admin.kit.actions import CreatedOnPage
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import OwnerFilter
from jobs.models import MailSubscription, WebhookEndpoint

COMMON = ("name", "owner_link", "event_list", "is_active")


class InterestAdmin(CreatedOnPage, RecordAdmin):
    """The columns that both have."""

    list_select_related = ("owner",)
    list_filter = (OwnerFilter,)
    ordering = ("-id",)

    @html.column(lazy("events"))
    def event_list(self, row: Any) -> str:
        return ", ".join(row.events)


@admin.register(WebhookEndpoint)
class WebhookAdmin(InterestAdmin):
    noun = WEBHOOKS
    list_display = (*COMMON, "failure_count", "last_delivered_at")
    fields = (*COMMON, "failure_count", "last_delivered_at", "reason", "created_at")

    @html.column(lazy("reason"))
    def reason(self, row: WebhookEndpoint) -> str:
        return row.disabled_reason or _("active")


@admin.register(MailSubscription)
class MailSubscriptionAdmin(InterestAdmin):
    noun = MAIL_SUBSCRIPTIONS
    list_display = COMMON
    fields = (*COMMON, "address_list", "language", "created_at")

    @html.column(lazy("addresses"))
    def address_list(self, row: MailSubscription) -> str:
        return ", ".join(row.addresses)
