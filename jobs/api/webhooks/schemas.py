"""What bodies and answers of webhooks look like."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ninja import Field, Schema

from jobs.api.kit.answers import facts_of
from jobs.api.kit.etags import etag_of
from jobs.models import DeliveryState, WebhookDelivery, WebhookEndpoint

CHANGED_BY_PEOPLE: Final = (
    *("name", "url", "events", "tasks", "job_id", "states", "has_details", "is_active"),
    "old_secret_until",
)
"""Columns of an endpoint; `old_secret_until` changes with each new key."""


class Webhook(Schema):
    """An endpoint, without its keys."""

    id: int
    name: str
    owner: str | None = Field(description="Null: events of all owners.")
    url: str
    events: list[str]
    tasks: list[str]
    job: int | None
    states: list[str]
    has_details: bool
    is_active: bool
    disabled_at: datetime | None
    disabled_reason: str
    failure_count: int = Field(description="Failed attempts since the last success.")
    retry_at: datetime | None
    last_delivered_at: datetime | None = Field(description="To the minute.")
    old_secret_until: datetime | None = Field(description="Until then the old key signs, too.")
    created_at: datetime

    @classmethod
    def of(cls, row: WebhookEndpoint, **more: Any) -> Webhook:
        """Return an endpoint that was loaded with its owner."""
        owner = row.owner.slug if row.owner is not None else None
        return cls(**facts_of(cls, row, owner=owner, job=row.job_id, **more))


def etag_of_webhook(row: WebhookEndpoint) -> str:
    """Return the ETag of an endpoint: of what people change, which no delivery does.

    A webhook that failures have disabled has another ETag: `is_active` is such a fact.
    """
    return etag_of("webhook", row.pk, [(name, getattr(row, name)) for name in CHANGED_BY_PEOPLE])


class WebhookCreated(Webhook):
    """An endpoint with its new key."""

    secret: str = Field(description="The key. It is shown only now.")


class Attempt(Schema):
    """One attempt of a delivery."""

    at: datetime
    status: int | None = Field(description="The answer's status; null without an answer.")
    problem: str = Field(description="Empty: it was delivered.")
    milliseconds: int


class Delivery(Schema):
    """One event for one endpoint."""

    id: int
    event_id: str = Field(description="The header webhook-id.")
    type: str
    at: datetime
    data: dict[str, Any]
    state: DeliveryState
    attempt_count: int
    next_at: datetime | None
    ended_at: datetime | None
    attempts: list[Attempt] = Field(description="The last ones.")

    @classmethod
    def of(cls, row: WebhookDelivery) -> Delivery:
        is_waiting = row.state == DeliveryState.WAITING
        attempts = [
            Attempt(at=at, status=status, problem=problem, milliseconds=took)
            for at, status, problem, took in row.attempts
        ]
        own = {"next_at": row.next_at if is_waiting else None, "attempts": attempts}
        return cls(**facts_of(cls, row, type=row.event_type, at=row.event_at, **own))


class Replayed(Schema):
    """How many are sent again; others wait already, or are not of this endpoint."""

    count: int
