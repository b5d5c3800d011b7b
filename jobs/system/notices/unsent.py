"""Whether webhooks and mails are asked for, and nothing sends them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.db.models import QuerySet

from jobs.core.conf import setting
from jobs.models import MailSubscription, WebhookEndpoint
from jobs.system.notices.interests import CONFIRM

NAMED: Final = 3


def unsent_queue(queues: Collection[str], *rows: QuerySet[Any]) -> str:
    """Return the queue of notices if workers do not take from it and any of these rows is active.

    `queues` are those that living workers take from. Empty: nothing is wrong.
    """
    queue: str = setting("NOTICES_QUEUE")
    is_needed = queue not in queues and any(each.filter(is_active=True).exists() for each in rows)
    return queue if is_needed else ""


def stopped_names(*rows: QuerySet[Any]) -> list[str]:
    """Return the names of a few of these rows that are off, as their makers lost their rights."""
    found = [
        each.filter(is_active=False, disabled_reason__endswith=CONFIRM).order_by("pk")[:NAMED]
        for each in rows
    ]
    return [row.name for each in found for row in each][:NAMED]


def all_rows() -> tuple[QuerySet[Any], QuerySet[Any]]:
    """Return the endpoints and the subscriptions of all owners."""
    return WebhookEndpoint.objects.all(), MailSubscription.objects.all()
