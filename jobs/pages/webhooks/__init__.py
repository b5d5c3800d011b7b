"""Webhooks: the list, and one endpoint with its deliveries."""

from jobs.pages.webhooks.listing import webhook, webhooks

__all__ = ["webhook", "webhooks"]
