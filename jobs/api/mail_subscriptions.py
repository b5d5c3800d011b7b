"""Mail subscriptions: created, changed, and the actions on them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from jobs.actions import Done
from jobs.actions.mail_subscriptions import MAIL_SUBSCRIPTIONS
from jobs.actions.texts import Slug, Text
from jobs.api.kit import interests
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import IF_MATCH, etag_of, unchanged
from jobs.api.kit.pages import Page, PageOf
from jobs.api.kit.wanted_events import Events, Name, States, Tasks
from jobs.core import barrier
from jobs.core.inputs import REASON_LIMIT
from jobs.models import MailSubscription, Scope
from jobs.system.notices import mails
from jobs.system.notices.mails import ADDRESSES_MOST

router = Router(tags=["mail subscriptions"])
READS = needs(Scope.ADMIN, "jobs.view_mailsubscription")
CREATES = needs(Scope.ADMIN, "jobs.add_mailsubscription")
CHANGES = needs(Scope.ADMIN, "jobs.change_mailsubscription")

Address = Annotated[Text, Field(min_length=3, max_length=254)]
Addresses = Annotated[list[Address], Field(min_length=1, max_length=ADDRESSES_MOST)]
Language = Annotated[Text, Field(max_length=16, description="A code, such as en or de.")]
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
        same = [name for name in cls.model_fields if name not in {"owner", "job"}]
        owner = row.owner.slug if row.owner is not None else None
        return cls(owner=owner, job=row.job_id, **{name: getattr(row, name) for name in same})


class SubscriptionToCreate(Schema):
    """A subscription to be created. Empty filters pass everything."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    addresses: Addresses
    events: Events
    owner: Slug | None = Field(None, description="Needed by callers with several owners.")
    is_for_all: bool = Field(False, description="Events of all owners; without `owner`.")
    language: Language = "en"
    tasks: Tasks = []
    job: int | None = Field(None, ge=1, le=2**63 - 1)
    states: States = []


class SubscriptionChange(Schema):
    """The fields to change; the reason is for the audit, and shown while it is switched off."""

    model_config = ConfigDict(extra="forbid")

    name: Name = ""
    addresses: Addresses = []
    events: Events = []
    language: Language = ""
    tasks: Tasks = []
    job: int | None = Field(None, ge=1, le=2**63 - 1)
    states: States = []
    is_active: bool = True
    reason: Annotated[Text, Field(max_length=REASON_LIMIT)] = ""


def _etag(row: MailSubscription) -> str:
    return etag_of("mail", row.pk, [(name, getattr(row, name)) for name in CHANGED_BY_PEOPLE])


@router.get("", auth=READS, response=PageOf[Subscription], operation_id="list_mail_subscriptions")
def list_subscriptions(request: HttpRequest, page: Page) -> PageOf[Subscription]:
    """Return subscriptions, newest first."""
    rows, following = interests.listed(request, page, MailSubscription, of="mail subscriptions")
    return PageOf[Subscription](items=[Subscription.of(row) for row in rows], next=following)


@router.post(
    "", auth=CREATES, response={201: Subscription}, operation_id="create_mail_subscription"
)
def create(
    request: HttpRequest, response: HttpResponse, body: SubscriptionToCreate
) -> Subscription:
    """Create a subscription."""
    access = caller(request)
    owner = interests.owner_given(access, body)
    with barrier.lifted():
        if owner is not None:
            owner.refresh_from_db()
        given = body.model_dump(exclude={"owner", "is_for_all"})
        made = mails.make_subscription(given, owner=owner, actor=access.actor)
        response["Location"] = f"{request.path}/{made.pk}"
        response["ETag"] = _etag(made)
        return Subscription.of(made)


@router.get(
    "/{int:subscription_id}",
    auth=READS,
    response=Subscription,
    operation_id="get_mail_subscription",
)
def get_subscription(request: HttpRequest, response: HttpResponse, subscription_id: int) -> Any:
    """Return one subscription. Its ETag is for `If-Match` of a change."""
    row = interests.found(request, MailSubscription, subscription_id)
    if not_modified := unchanged(request, response, _etag(row)):
        return not_modified
    return Subscription.of(row)


@router.patch(
    "/{int:subscription_id}",
    auth=CHANGES,
    response=Subscription,
    operation_id="change_mail_subscription",
    openapi_extra=IF_MATCH,
)
def change(
    request: HttpRequest, response: HttpResponse, subscription_id: int, body: SubscriptionChange
) -> Subscription:
    """Change the given fields. `If-Match` with its ETag is required."""
    with interests.locked(request, MailSubscription, subscription_id, etag=_etag) as row:
        given = body.model_dump(exclude_unset=True)
        reason = given.pop("reason", "")
        mails.change_subscription(row, given, actor=caller(request).actor, reason=reason)
        response["ETag"] = _etag(row)
        return Subscription.of(row)


def _shown(_request: HttpRequest, response: HttpResponse, done: Done) -> Subscription:
    response["ETag"] = _etag(done.row)
    with barrier.lifted():
        return Subscription.of(done.row)


serve(
    router,
    MAIL_SUBSCRIPTIONS,
    "{int:subscription_id}",
    Answer(schema=Subscription, of=_shown),
    etag_of=lambda row, _request: _etag(row),
)
