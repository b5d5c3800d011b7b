"""The list of endpoints, and one of them with its newest deliveries."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse

from jobs.actions import find, may_create
from jobs.actions.webhooks import WEBHOOKS
from jobs.models import DeliveryState, EventType, Scope, WebhookDelivery, WebhookEndpoint
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.visit import Visit, page
from jobs.runs.reads.choices import word_of

ENDPOINTS_SHOWN: Final = 200
DELIVERIES_SHOWN: Final = 50
WORDS: Final = dict(EventType.choices)
TONES: Final = {
    DeliveryState.WAITING: "queued",
    DeliveryState.DELIVERED: "succeeded",
    DeliveryState.FAILED: "failed",
}


@page("webhooks", permission="jobs.view_webhookendpoint")
def webhooks(visit: Visit) -> HttpResponse:
    """Show the endpoints, the newest first."""
    rows = visit.rows(WebhookEndpoint.objects.select_related("owner")).order_by("-pk")
    found = list(rows[:ENDPOINTS_SHOWN])
    return visit.show(
        "jobs/pages/webhooks/list.html",
        endpoints=found,
        may_create=may_create(WEBHOOKS, by=visit.access),
    )


@page("webhooks", permission="jobs.view_webhookendpoint")
def webhook(visit: Visit, key: int) -> HttpResponse:
    """Show one endpoint, and its newest deliveries."""
    found: WebhookEndpoint = find(WEBHOOKS, key, by=visit.access)
    sees_runs = visit.may("jobs.view_run", Scope.READ, found.owner_id)
    rows = found.deliveries.order_by("-pk")[:DELIVERIES_SHOWN]
    deliveries = list(rows) if sees_runs else []
    return visit.show(
        "jobs/pages/webhooks/one.html",
        live="jobs/pages/webhooks/one_live.html",
        endpoint=found,
        events=[WORDS[event] for event in found.events if event in WORDS],
        states=[word_of(state) for state in found.states],
        deliveries=[(one, _tone(one), word_of(one.data.get("state", ""))) for one in deliveries],
        most=DELIVERIES_SHOWN,
        sees_runs=sees_runs,
        may_change=visit.may("jobs.change_webhookendpoint", Scope.ADMIN, found.owner_id),
        buttons=buttons(visit, WEBHOOKS, found),
    )


def _tone(delivery: WebhookDelivery) -> str:
    return TONES[DeliveryState(delivery.state)]
