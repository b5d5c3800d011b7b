"""Webhooks: the list, one endpoint with its deliveries, and the verbs on it."""

from jobs.pages.webhooks.acts import webhook_verb
from jobs.pages.webhooks.form import add_webhook, edit_webhook
from jobs.pages.webhooks.listing import webhook, webhooks

__all__ = ["add_webhook", "edit_webhook", "webhook", "webhook_verb", "webhooks"]
