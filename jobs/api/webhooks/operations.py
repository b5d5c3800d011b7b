"""Webhook endpoints: created, and the actions on them; their deliveries."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from jobs.actions import Done, refuse_without_permission, refuse_without_scope
from jobs.actions.webhooks import WEBHOOKS
from jobs.api.kit.actions import Answer, of_row, serve, serve_creation
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.api.webhooks.schemas import (
    Delivery,
    Replayed,
    Webhook,
    WebhookCreated,
    etag_of_webhook,
)
from jobs.core import barrier
from jobs.models import Scope

router = Router(tags=["webhooks"])
READS = needs(Scope.ADMIN, "jobs.view_webhookendpoint")


@router.get("", auth=READS, response=PageOf[Webhook], operation_id="list_webhooks")
def list_webhooks(request: HttpRequest, page: Page) -> PageOf[Webhook]:
    """Return endpoints, newest first."""
    return newest_first(request, page, _administered(request), Webhook.of, of="webhooks")


@router.get("/{int:webhook_id}", auth=READS, response=Webhook, operation_id="get_webhook")
def get_webhook(request: HttpRequest, response: HttpResponse, webhook_id: int) -> Any:
    """Return one endpoint. Its ETag is for `If-Match` of a change.

    Deliveries do not change the ETag, so an answer 304 says nothing of them.
    """
    row = _administered(request).get(pk=webhook_id)
    return unchanged(request, response, etag_of_webhook(row)) or Webhook.of(row)


@router.get(
    "/{int:webhook_id}/deliveries",
    auth=READS,
    response=PageOf[Delivery],
    operation_id="list_webhook_deliveries",
)
def deliveries(request: HttpRequest, webhook_id: int, page: Page) -> PageOf[Delivery]:
    """Return the deliveries of an endpoint, newest first."""
    webhook = _administered(request).get(pk=webhook_id)
    # The runs in deliveries need more than the webhook itself.
    refuse_without_scope(caller(request), Scope.READ, webhook.owner_id)
    refuse_without_permission(caller(request), "jobs.view_run")
    rows = webhook.deliveries.all()
    return newest_first(
        request, page, rows, Delivery.of, of="webhook deliveries", filters=webhook_id
    )


def _administered(request: HttpRequest) -> Any:
    return caller(request).narrowed(WEBHOOKS.rows(), scope=Scope.ADMIN)


def _made(_request: HttpRequest, response: HttpResponse, done: Done) -> Webhook:
    response["Cache-Control"] = "no-store"
    response["ETag"] = etag_of_webhook(done.value.endpoint)
    with barrier.lifted():
        return WebhookCreated.of(done.value.endpoint, secret=done.value.secret)


serve_creation(router, WEBHOOKS, Answer(schema=WebhookCreated, of=_made))
serve(
    router,
    WEBHOOKS,
    "{int:webhook_id}",
    of_row(Webhook, etag_of_webhook),
    etag_of=lambda row, _request: etag_of_webhook(row),
    answers={
        "test": Answer(schema=Delivery, of=lambda *given: Delivery.of(given[2].value), status=202),
        "replay": Answer(schema=Replayed, of=lambda *given: Replayed(count=given[2].value)),
        "rotate": Answer(schema=WebhookCreated, of=_made),
    },
)
