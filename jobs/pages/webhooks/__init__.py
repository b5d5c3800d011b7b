"""Webhooks: the list, one endpoint with its deliveries, and the form that creates one."""

from jobs.pages.webhooks.form import create_webhook
from jobs.pages.webhooks.listing import webhook, webhooks

__all__ = ["create_webhook", "webhook", "webhooks"]
