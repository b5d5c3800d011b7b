"""Webhook endpoints: created, and the actions on them; their deliveries."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from jobs.actions import Done, refuse_without_permission, refuse_without_scope
from jobs.actions.webhooks import WEBHOOKS
from jobs.api.kit import interests
from jobs.api.kit.actions import Answer, serve, serve_creation
from jobs.api.kit.callers import (
    caller,
    needs,
)
from jobs.api.kit.etags import unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.webhooks.schemas import (
    Delivery,
    Replayed,
    Webhook,
    WebhookCreated,
    etag_of_webhook,
)
from jobs.core import barrier
from jobs.models import Scope, WebhookEndpoint

router = Router(tags=["webhooks"])
READS = needs(Scope.ADMIN, "jobs.view_webhookendpoint")


@router.get("", auth=READS, response=PageOf[Webhook], operation_id="list_webhooks")
def list_webhooks(request: HttpRequest, page: Page) -> PageOf[Webhook]:
    """Return endpoints, newest first."""
    rows, following = interests.listed(request, page, WebhookEndpoint, of="webhooks")
    return PageOf[Webhook](items=[Webhook.of(row) for row in rows], next=following)


@router.get("/{int:webhook_id}", auth=READS, response=Webhook, operation_id="get_webhook")
def get_webhook(request: HttpRequest, response: HttpResponse, webhook_id: int) -> Any:
    """Return one endpoint. Its ETag is for `If-Match` of a change.

    Deliveries do not change the ETag, so an answer 304 says nothing of them.
    """
    row = interests.found(request, WebhookEndpoint, webhook_id)
    if not_modified := unchanged(request, response, etag_of_webhook(row)):
        return not_modified
    return Webhook.of(row)


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


def _made(_request: HttpRequest, response: HttpResponse, done: Done) -> Webhook:
    response["Cache-Control"] = "no-store"
    response["ETag"] = etag_of_webhook(done.value.endpoint)
    with barrier.lifted():
        return WebhookCreated.of(done.value.endpoint, secret=done.value.secret)


def _shown(_request: HttpRequest, response: HttpResponse, done: Done) -> Webhook:
    response["ETag"] = etag_of_webhook(done.row)
    with barrier.lifted():
        return Webhook.of(done.row)


serve_creation(router, WEBHOOKS, Answer(schema=WebhookCreated, of=_made))
serve(
    router,
    WEBHOOKS,
    "{int:webhook_id}",
    Answer(schema=Webhook, of=_shown),
    etag_of=lambda row, _request: etag_of_webhook(row),
    answers={
        "test": Answer(schema=Delivery, of=lambda *given: Delivery.of(given[2].value), status=202),
        "replay": Answer(schema=Replayed, of=lambda *given: Replayed(count=given[2].value)),
        "rotate": Answer(schema=WebhookCreated, of=_made),
    },
)


def _found_with_runs(request: HttpRequest, webhook_id: int) -> WebhookEndpoint:
    """Return an endpoint; refuse a caller that may not see the runs in its deliveries."""
    row = interests.found(request, WebhookEndpoint, webhook_id)
    refuse_without_scope(caller(request), Scope.READ, row.owner_id)
    refuse_without_permission(caller(request), "jobs.view_run")
    return row
