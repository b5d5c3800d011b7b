"""Webhook endpoints and their deliveries: the operations, and the forms of bodies and answers."""

from jobs.api.webhooks.operations import router

__all__ = ["router"]
