"""Mail subscriptions: created, and the actions on them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema

from jobs.actions.mail_subscriptions import MAIL_SUBSCRIPTIONS
from jobs.api.kit.actions import of_row, serve, serve_creation
from jobs.api.kit.answers import facts_of
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.models import MailSubscription, Scope

router = Router(tags=["mail subscriptions"])
READS = needs(Scope.ADMIN, "jobs.view_mailsubscription")

CHANGED_BY_PEOPLE: Final = (
    *("name", "addresses", "language", "events", "tasks", "job_id", "states", "is_active"),
    "disabled_reason",
)


class Subscription(Schema):
    """Addresses that get mails about the events that they ask for."""

    id: int
    name: str
    owner: str | None = Field(description="Null: events of all owners.")
    addresses: list[str]
    language: str
    events: list[str]
    tasks: list[str]
    job: int | None
    states: list[str]
    is_active: bool
    disabled_at: datetime | None
    disabled_reason: str
    created_at: datetime

    @classmethod
    def of(cls, row: MailSubscription) -> Subscription:
        owner = row.owner.slug if row.owner is not None else None
        return cls(**facts_of(cls, row, owner=owner, job=row.job_id))


def _etag(row: MailSubscription) -> str:
    return etag_of("mail", row.pk, [(name, getattr(row, name)) for name in CHANGED_BY_PEOPLE])


@router.get("", auth=READS, response=PageOf[Subscription], operation_id="list_mail_subscriptions")
def list_subscriptions(request: HttpRequest, page: Page) -> PageOf[Subscription]:
    """Return subscriptions, newest first."""
    rows = _administered(request)
    return newest_first(request, page, rows, Subscription.of, of="mail subscriptions")


@router.get(
    "/{int:subscription_id}",
    auth=READS,
    response=Subscription,
    operation_id="get_mail_subscription",
)
def get_subscription(request: HttpRequest, response: HttpResponse, subscription_id: int) -> Any:
    """Return one subscription. Its ETag is for `If-Match` of a change."""
    row = _administered(request).get(pk=subscription_id)
    return unchanged(request, response, _etag(row)) or Subscription.of(row)


def _administered(request: HttpRequest) -> Any:
    return caller(request).narrowed(MAIL_SUBSCRIPTIONS.rows(), scope=Scope.ADMIN)


ANSWER: Final = of_row(Subscription, _etag)
serve_creation(router, MAIL_SUBSCRIPTIONS, ANSWER)
serve(
    router,
    MAIL_SUBSCRIPTIONS,
    "{int:subscription_id}",
    ANSWER,
    etag_of=lambda row, _request: _etag(row),
)
