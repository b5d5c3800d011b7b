"""Webhooks: the list, one endpoint with its deliveries, and the forms that create and change it."""

from jobs.pages.webhooks.form import change_webhook, create_webhook
from jobs.pages.webhooks.listing import webhook, webhooks

__all__ = ["change_webhook", "create_webhook", "webhook", "webhooks"]
