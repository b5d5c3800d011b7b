"""Webhook endpoints: created, changed, given new keys, tried, deleted; deliveries sent again.

Every verb is audited. Raises OptionError with the field and its limit; AccessDenied if the actor
may not see what the endpoint would send. That the actor is an admin, its action has checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import uuid4

from django.db import transaction

from jobs.catalog.builtin.errors import HttpRequestRefused
from jobs.catalog.builtin.http import build_request, refuse_at_once
from jobs.core.conf import setting
from jobs.core.errors import OptionError
from jobs.core.inputs import refuse_text
from jobs.core.sql import now
from jobs.models import DeliveryState, Owner, WebhookDelivery, WebhookEndpoint
from jobs.models.notice import TEST_EVENT
from jobs.models.verbs import Actor
from jobs.models.webhook import URL_MOST
from jobs.system.notices import interests, listening, secrets

OLD_KEY_SECONDS: Final = 86_400.0
"""How long the old key signs, too, unless the caller says otherwise."""
OLD_KEY_MOST: Final = 30 * 86_400.0
ENDPOINTS_MOST: Final = 100
"""Most endpoints of an owner, and of the installation."""
REPLAYS_MOST: Final = 500


class MadeEndpoint(NamedTuple):
    """A new endpoint, or one with a new key, and the key, which is not shown again."""

    endpoint: WebhookEndpoint
    secret: str


@transaction.atomic
def make_endpoint(
    given: Mapping[str, Any], *, owner: Owner | None, actor: Actor = None
) -> MadeEndpoint:
    """Make an endpoint for an owner, or for all (None); `name`, `url` and `events` are required."""
    interests.refuse_unseen(actor, owner, has_details=bool(given.get("has_details")))
    fields = _checked({"name": "", "events": [], "url": "", **given}, owner=owner, actor=actor)
    if WebhookEndpoint.objects.filter(owner=owner).count() >= ENDPOINTS_MOST:
        raise OptionError("url", f"would be one of more than {ENDPOINTS_MOST} endpoints")
    bound_to, place = secrets.new_place(owner)
    shown, sealed = secrets.new_key(place)
    endpoint = WebhookEndpoint.objects.create(
        owner=owner,
        bound_to=bound_to,
        secret=sealed.data,
        secret_key=sealed.key,
        **fields,
        **interests.made_by(actor),
    )
    interests.audit("create", endpoint, actor, url=_host_of(endpoint), events=endpoint.events)
    listening.sync_all()
    endpoint.refresh_from_db()
    return MadeEndpoint(endpoint, shown)


@transaction.atomic
def change_endpoint(
    endpoint: WebhookEndpoint, given: Mapping[str, Any], *, actor: Actor = None, reason: str = ""
) -> list[str]:
    """Change the given fields; return the names of those that differed.

    An endpoint that is made active again begins without failures, and sends what has waited.
    """
    row = _locked(endpoint)
    fields = _checked(given, owner=row.owner, actor=actor)
    if fields.get("is_active", row.is_active) != row.is_active:
        row.failure_count, row.retry_at = 0, None
    changed = interests.change(row, fields, actor=actor, reason=reason)
    endpoint.refresh_from_db()
    return changed


@transaction.atomic
def delete_endpoint(endpoint: WebhookEndpoint, *, actor: Actor = None, reason: str = "") -> None:
    """Delete an endpoint: it sends nothing more, and its deliveries are not shown any more."""
    rows = WebhookEndpoint.objects.filter(pk=endpoint.pk)
    if rows.update(**WebhookEndpoint.DELETED, job=None):
        interests.audit("delete", endpoint, actor, reason=reason, url=_host_of(endpoint))
        listening.sync_all()


@transaction.atomic
def rotate_key(
    endpoint: WebhookEndpoint,
    *,
    old_key_seconds: float = OLD_KEY_SECONDS,
    actor: Actor = None,
    reason: str = "",
) -> MadeEndpoint:
    """Give an endpoint a new key. The old one signs, too, for a while; one before it no more."""
    if not 0 <= old_key_seconds <= OLD_KEY_MOST:
        raise OptionError("old_key_seconds", f"is 0 to {OLD_KEY_MOST:.0f} seconds")
    row = _locked(endpoint)
    shown, sealed = secrets.new_key(row.place)
    row.old_secret, row.old_secret_key = row.secret, row.secret_key
    row.old_secret_until = now() + timedelta(seconds=old_key_seconds)
    row.secret, row.secret_key = sealed.data, sealed.key
    row.save()
    interests.audit("rotate", row, actor, reason=reason, old_key_seconds=old_key_seconds)
    endpoint.refresh_from_db()
    return MadeEndpoint(endpoint, shown)


@transaction.atomic
def send_test(
    endpoint: WebhookEndpoint, *, actor: Actor = None, reason: str = ""
) -> WebhookDelivery:
    """Make a delivery of an event of its own, and send it before all others."""
    at = now()
    owner = endpoint.owner.slug if endpoint.owner is not None else None
    delivery = WebhookDelivery.objects.create(
        endpoint=endpoint,
        owner_id=endpoint.owner_id,
        event_id=f"evt_test_{uuid4().hex}",
        event_type=TEST_EVENT,
        event_at=at,
        data={"owner": owner, "endpoint": endpoint.pk},
        state=DeliveryState.WAITING,
        # The first of those that are due.
        next_at=at - timedelta(days=1),
    )
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(retry_at=None)
    interests.audit("test", endpoint, actor, reason=reason)
    delivery.refresh_from_db()
    return delivery


@transaction.atomic
def replay(
    endpoint: WebhookEndpoint,
    delivery_ids: Sequence[int] | None,
    *,
    actor: Actor = None,
    reason: str = "",
) -> int:
    """Send ended deliveries again, at once, with all their attempts; return how many.

    None: the failed ones, the oldest REPLAYS_MOST.
    """
    if delivery_ids is None:
        failed = endpoint.deliveries.filter(state=DeliveryState.FAILED).order_by("pk")
        delivery_ids = list(failed.values_list("pk", flat=True)[:REPLAYS_MOST])
    if len(delivery_ids) > REPLAYS_MOST:
        raise OptionError("deliveries", f"holds at most {REPLAYS_MOST}")
    interests.refuse_unseen(actor, endpoint.owner)
    rows = endpoint.deliveries.filter(pk__in=delivery_ids).exclude(state=DeliveryState.WAITING)
    count = rows.update(state=DeliveryState.WAITING, next_at=now(), attempt_count=0, ended_at=None)
    if count:
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(retry_at=None)
        interests.audit("replay", endpoint, actor, reason=reason, count=count)
    return count


def _checked(given: Mapping[str, Any], *, owner: Owner | None, actor: Any) -> dict[str, Any]:
    fields = interests.checked(given, owner=owner, actor=actor)
    if "has_details" in given:
        fields["has_details"] = bool(given["has_details"])
    if "url" in given:
        fields["url"] = _checked_url(given["url"], owner)
    return fields


def _checked_url(url: Any, owner: Owner | None) -> str:
    """Return a URL that needs no look-up to be refused; each delivery checks its address again."""
    refuse_text("url", url, most=URL_MOST)
    try:
        request = build_request("POST", url, headers={}, body="", json=None)
        refuse_at_once(
            request,
            allowed=setting("HTTP_ALLOWED_HOSTS"),
            owner=owner.slug if owner is not None else None,
        )
    except HttpRequestRefused as error:
        raise OptionError("url", error.problem) from None
    return str(url)


def _locked(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    rows = WebhookEndpoint.objects.select_for_update(of=("self",)).select_related("owner")
    return rows.get(pk=endpoint.pk)


def _host_of(endpoint: WebhookEndpoint) -> str:
    """Return scheme, host and port: a path may hold a secret."""
    return build_request("POST", endpoint.url, headers={}, body="", json=None).url.shown
