"""Webhook endpoints: made, changed, given new keys, tried; their deliveries, and replays."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from jobs.api.kit.callers import caller, needs, refuse_other_scope, refuse_without
from jobs.api.kit.owning import owner_of_request
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.problems import first_of
from jobs.api.kit.reasons import ReasonBody, WithReason
from jobs.api.kit.texts import Slug, TaskName, Text
from jobs.core import barrier
from jobs.models import DeliveryState, EventType, Owner, Scope, WebhookDelivery, WebhookEndpoint
from jobs.models.access import Access
from jobs.models.webhook import URL_MOST
from jobs.system.notices import endpoints
from jobs.system.notices.endpoints import OLD_KEY_MOST, OLD_KEY_SECONDS, REPLAYS_MOST, MadeEndpoint
from jobs.system.notices.interests import NAME_LIMIT, PATTERNS_LIMIT

router = Router(tags=["webhooks"])
READS = needs(Scope.ADMIN, "jobs.view_webhookendpoint")
MAKES = needs(Scope.ADMIN, "jobs.add_webhookendpoint")
CHANGES = needs(Scope.ADMIN, "jobs.change_webhookendpoint")
DELETES = needs(Scope.ADMIN, "jobs.delete_webhookendpoint")

EndpointName = Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT, pattern=r"\S")]
Url = Annotated[Text, Field(min_length=1, max_length=URL_MOST)]
Events = Annotated[list[EventType], Field(min_length=1, max_length=len(EventType))]
Tasks = Annotated[list[TaskName], Field(max_length=PATTERNS_LIMIT)]
States = Annotated[list[Text], Field(max_length=4, description="States of ended runs.")]


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
    def of(cls, row: WebhookEndpoint) -> Webhook:
        return cls(**facts(row))


def facts(row: WebhookEndpoint) -> dict[str, Any]:
    """Return the fields of an endpoint that was loaded with its owner."""
    same = [name for name in Webhook.model_fields if name not in {"owner", "job"}]
    owner = row.owner.slug if row.owner is not None else None
    return {"owner": owner, "job": row.job_id, **{name: getattr(row, name) for name in same}}


class WebhookMade(Webhook):
    """An endpoint with its new key."""

    secret: str = Field(description="The key. It is shown only now.")

    @classmethod
    def of_made(cls, made: MadeEndpoint) -> WebhookMade:
        return cls(**facts(made.endpoint), secret=made.secret)


class WebhookToMake(Schema):
    """An endpoint to be made. Empty filters pass everything."""

    model_config = ConfigDict(extra="forbid")

    name: EndpointName
    url: Url
    events: Events
    owner: Slug | None = Field(None, description="Needed by callers with several owners.")
    is_for_all: bool = Field(False, description="Events of all owners; without `owner`.")
    tasks: Tasks = []
    job: int | None = Field(None, ge=1, le=2**63 - 1)
    states: States = []
    has_details: bool = False


class WebhookChange(Schema):
    """The fields to change."""

    model_config = ConfigDict(extra="forbid")

    name: EndpointName = ""
    url: Url = ""
    events: Events = []
    tasks: Tasks = []
    job: int | None = Field(None, ge=1, le=2**63 - 1)
    states: States = []
    has_details: bool = False
    is_active: bool = True


class KeyRotation(ReasonBody):
    """How long the old key signs, too."""

    old_key_seconds: float = Field(OLD_KEY_SECONDS, ge=0, le=OLD_KEY_MOST)


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
        return cls(
            id=row.pk,
            event_id=row.event_id,
            type=row.event_type,
            at=row.event_at,
            data=row.data,
            state=DeliveryState(row.state),
            attempt_count=row.attempt_count,
            next_at=row.next_at if is_waiting else None,
            ended_at=row.ended_at,
            attempts=[
                Attempt(at=at, status=status, problem=problem, milliseconds=took)
                for at, status, problem, took in row.attempts
            ],
        )


class Replay(ReasonBody):
    """The deliveries to send again."""

    deliveries: list[Annotated[int, Field(ge=1, le=2**63 - 1)]] = Field(
        min_length=1, max_length=REPLAYS_MOST
    )


class Replayed(Schema):
    """How many are sent again; others wait already, or are not of this endpoint."""

    count: int


@router.get("", auth=READS, response=PageOf[Webhook], operation_id="list_webhooks")
def list_webhooks(request: HttpRequest, page: Page) -> PageOf[Webhook]:
    """Return endpoints, newest first."""
    access = caller(request)
    cursor = Cursor.read(page, of="webhooks", caller=access.actor)
    rows, following = cursor.newest_first(_visible(access))
    return PageOf[Webhook](items=[Webhook.of(row) for row in rows], next=following)


@router.post("", auth=MAKES, response={201: WebhookMade}, operation_id="make_webhook")
def make(request: HttpRequest, response: HttpResponse, body: WebhookToMake) -> WebhookMade:
    """Make an endpoint, and return its key."""
    access = caller(request)
    owner = _owner(access, body)
    with barrier.lifted():
        if owner is not None:
            owner.refresh_from_db()
        given = body.model_dump(exclude={"owner", "is_for_all"})
        made = endpoints.make_endpoint(given, owner=owner, actor=access.actor)
        response["Location"] = f"{request.path}/{made.endpoint.pk}"
        response["Cache-Control"] = "no-store"
        return WebhookMade.of_made(made)


@router.get("/{int:webhook_id}", auth=READS, response=Webhook, operation_id="get_webhook")
def get_webhook(request: HttpRequest, webhook_id: int) -> Webhook:
    """Return one endpoint."""
    return Webhook.of(_found(request, webhook_id))


@router.patch("/{int:webhook_id}", auth=CHANGES, response=Webhook, operation_id="change_webhook")
def change(request: HttpRequest, webhook_id: int, body: WebhookChange) -> Webhook:
    """Change the given fields. One that is made active again sends what has waited."""
    row = _found(request, webhook_id)
    with barrier.lifted():
        given = body.model_dump(exclude_unset=True)
        endpoints.change_endpoint(row, given, actor=caller(request).actor)
        return Webhook.of(row)


@router.delete(
    "/{int:webhook_id}", auth=DELETES, response={204: None}, operation_id="delete_webhook"
)
def delete(request: HttpRequest, webhook_id: int, query: WithReason) -> None:
    """Delete an endpoint with its deliveries."""
    row = _found(request, webhook_id)
    with barrier.lifted():
        endpoints.delete_endpoint(row, actor=caller(request).actor, reason=query.reason)


@router.post(
    "/{int:webhook_id}/rotate",
    auth=CHANGES,
    response=WebhookMade,
    operation_id="rotate_webhook_key",
)
def rotate(
    request: HttpRequest, response: HttpResponse, webhook_id: int, body: KeyRotation
) -> WebhookMade:
    """Give an endpoint a new key, and return it. Both keys sign for a while."""
    row = _found(request, webhook_id)
    with barrier.lifted():
        made = endpoints.rotate_key(
            row,
            old_key_seconds=body.old_key_seconds,
            actor=caller(request).actor,
            reason=body.reason,
        )
        response["Cache-Control"] = "no-store"
        return WebhookMade.of_made(made)


@router.post(
    "/{int:webhook_id}/test",
    auth=CHANGES,
    response={202: Delivery},
    operation_id="test_webhook",
)
def send_test(request: HttpRequest, webhook_id: int) -> Delivery:
    """Send an event of type `webhook.test` to an endpoint."""
    row = _found(request, webhook_id)
    with barrier.lifted():
        return Delivery.of(endpoints.send_test(row, actor=caller(request).actor))


@router.get(
    "/{int:webhook_id}/deliveries",
    auth=READS,
    response=PageOf[Delivery],
    operation_id="list_webhook_deliveries",
)
def deliveries(request: HttpRequest, webhook_id: int, page: Page) -> PageOf[Delivery]:
    """Return the deliveries of an endpoint, newest first."""
    row = _found(request, webhook_id)
    cursor = Cursor.read(
        page, of="webhook deliveries", caller=caller(request).actor, filters=row.pk
    )
    found, following = cursor.newest_first(row.deliveries.all())
    return PageOf[Delivery](items=[Delivery.of(one) for one in found], next=following)


@router.post(
    "/{int:webhook_id}/replay", auth=CHANGES, response=Replayed, operation_id="replay_webhook"
)
def replay(request: HttpRequest, webhook_id: int, body: Replay) -> Replayed:
    """Send ended deliveries again, under the same ids."""
    row = _found(request, webhook_id)
    with barrier.lifted():
        count = endpoints.replay(
            row, body.deliveries, actor=caller(request).actor, reason=body.reason
        )
    return Replayed(count=count)


def _owner(access: Access, body: WebhookToMake) -> Owner | None:
    if not body.is_for_all:
        return owner_of_request(access, body.owner, Scope.ADMIN)
    refuse_without(access, Scope.ADMIN, None)
    return None


def _visible(access: Access) -> Any:
    rows = WebhookEndpoint.objects.select_related("owner")
    return access.narrowed(rows, scope=Scope.ADMIN)


def _found(request: HttpRequest, webhook_id: int) -> WebhookEndpoint:
    rows = _visible(caller(request)).filter(pk=webhook_id)
    found: WebhookEndpoint = first_of(rows)
    refuse_other_scope(request, Scope.ADMIN, found.owner_id)
    return found
