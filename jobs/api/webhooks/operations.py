"""Webhook endpoints: made, changed, given new keys, tried; their deliveries, and replays."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from jobs.api.kit import interests
from jobs.api.kit.callers import (
    caller,
    needs,
    refuse_other_scope,
    refuse_without_permission,
)
from jobs.api.kit.etags import IF_MATCH, IF_MATCH_OPTIONAL, unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.reasons import ReasonBody, WithReason
from jobs.api.webhooks.schemas import (
    Delivery,
    KeyRotation,
    Replay,
    Replayed,
    Webhook,
    WebhookChange,
    WebhookMade,
    WebhookToMake,
    etag_of_webhook,
)
from jobs.core import barrier
from jobs.models import Scope, WebhookEndpoint
from jobs.system.notices import endpoints

router = Router(tags=["webhooks"])
READS = needs(Scope.ADMIN, "jobs.view_webhookendpoint")
MAKES = needs(Scope.ADMIN, "jobs.add_webhookendpoint")
CHANGES = needs(Scope.ADMIN, "jobs.change_webhookendpoint")
DELETES = needs(Scope.ADMIN, "jobs.delete_webhookendpoint")


@router.get("", auth=READS, response=PageOf[Webhook], operation_id="list_webhooks")
def list_webhooks(request: HttpRequest, page: Page) -> PageOf[Webhook]:
    """Return endpoints, newest first."""
    rows, following = interests.listed(request, page, WebhookEndpoint, of="webhooks")
    return PageOf[Webhook](items=[Webhook.of(row) for row in rows], next=following)


@router.post("", auth=MAKES, response={201: WebhookMade}, operation_id="make_webhook")
def make(request: HttpRequest, response: HttpResponse, body: WebhookToMake) -> WebhookMade:
    """Make an endpoint, and return its key."""
    access = caller(request)
    owner = interests.owner_given(access, body)
    with barrier.lifted():
        if owner is not None:
            owner.refresh_from_db()
        given = body.model_dump(exclude={"owner", "is_for_all"})
        made = endpoints.make_endpoint(given, owner=owner, actor=access.actor)
        response["Location"] = f"{request.path}/{made.endpoint.pk}"
        response["Cache-Control"] = "no-store"
        response["ETag"] = etag_of_webhook(made.endpoint)
        return WebhookMade.of_made(made)


@router.get("/{int:webhook_id}", auth=READS, response=Webhook, operation_id="get_webhook")
def get_webhook(request: HttpRequest, response: HttpResponse, webhook_id: int) -> Any:
    """Return one endpoint. Its ETag is for `If-Match` of a change.

    Deliveries do not change the ETag, so an answer 304 says nothing of them.
    """
    row = _found(request, webhook_id)
    if not_modified := unchanged(request, response, etag_of_webhook(row)):
        return not_modified
    return Webhook.of(row)


@router.patch(
    "/{int:webhook_id}",
    auth=CHANGES,
    response=Webhook,
    operation_id="change_webhook",
    openapi_extra=IF_MATCH,
)
def change(
    request: HttpRequest, response: HttpResponse, webhook_id: int, body: WebhookChange
) -> Webhook:
    """Change the given fields. `If-Match` with its ETag is required.

    One that is made active again sends what has waited.
    """
    with _locked(request, webhook_id, is_required=True) as row:
        given = body.model_dump(exclude_unset=True)
        endpoints.change_endpoint(row, given, actor=caller(request).actor)
        response["ETag"] = etag_of_webhook(row)
        return Webhook.of(row)


@router.delete(
    "/{int:webhook_id}",
    auth=DELETES,
    response={204: None},
    operation_id="delete_webhook",
    openapi_extra=IF_MATCH,
)
def delete(request: HttpRequest, webhook_id: int, query: WithReason) -> Status:
    """Delete an endpoint with its deliveries. `If-Match` with its ETag is required."""
    with _locked(request, webhook_id, is_required=True) as row:
        endpoints.delete_endpoint(row, actor=caller(request).actor, reason=query.reason)
    return Status(204, None)


@router.post(
    "/{int:webhook_id}/rotate",
    auth=CHANGES,
    response=WebhookMade,
    operation_id="rotate_webhook_key",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def rotate(
    request: HttpRequest, response: HttpResponse, webhook_id: int, body: KeyRotation
) -> WebhookMade:
    """Give an endpoint a new key, and return it. Both keys sign for a while."""
    with _locked(request, webhook_id) as row:
        made = endpoints.rotate_key(
            row,
            old_key_seconds=body.old_key_seconds,
            actor=caller(request).actor,
            reason=body.reason,
        )
        response["Cache-Control"] = "no-store"
        response["ETag"] = etag_of_webhook(made.endpoint)
        return WebhookMade.of_made(made)


@router.post(
    "/{int:webhook_id}/test",
    auth=CHANGES,
    response={202: Delivery},
    operation_id="test_webhook",
)
def send_test(request: HttpRequest, webhook_id: int, body: ReasonBody) -> Delivery:
    """Send an event of type `webhook.test` to an endpoint."""
    row = _found(request, webhook_id)
    with barrier.lifted():
        made = endpoints.send_test(row, actor=caller(request).actor, reason=body.reason)
        return Delivery.of(made)


@router.get(
    "/{int:webhook_id}/deliveries",
    auth=READS,
    response=PageOf[Delivery],
    operation_id="list_webhook_deliveries",
)
def deliveries(request: HttpRequest, webhook_id: int, page: Page) -> PageOf[Delivery]:
    """Return the deliveries of an endpoint, newest first."""
    row = _found_with_runs(request, webhook_id)
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
    row = _found_with_runs(request, webhook_id)
    with barrier.lifted():
        count = endpoints.replay(
            row, body.deliveries, actor=caller(request).actor, reason=body.reason
        )
    return Replayed(count=count)


def _found(request: HttpRequest, webhook_id: int) -> WebhookEndpoint:
    return interests.found(request, WebhookEndpoint, webhook_id)


def _found_with_runs(request: HttpRequest, webhook_id: int) -> WebhookEndpoint:
    """Return an endpoint; refuse a caller that may not see the runs in its deliveries."""
    row = _found(request, webhook_id)
    refuse_other_scope(request, Scope.READ, row.owner_id)
    with barrier.lifted():
        refuse_without_permission(caller(request), "jobs.view_run")
    return row


def _locked(
    request: HttpRequest, webhook_id: int, *, is_required: bool = False
) -> AbstractContextManager[WebhookEndpoint]:
    return interests.locked(
        request, WebhookEndpoint, webhook_id, etag=etag_of_webhook, is_required=is_required
    )
