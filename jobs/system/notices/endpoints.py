"""Webhook endpoints: created, changed, given new keys, tried, deleted; deliveries sent again.

Every verb is audited. Raises OptionError with the field and its limit; AccessDenied if the actor
lacks the scope `admin` for the owner, or may not see what the endpoint would send.
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
from jobs.core.errors import AccessDenied, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.sql import now
from jobs.models import AuditEntry, DeliveryState, Owner, WebhookDelivery, WebhookEndpoint
from jobs.models.notice import TEST_EVENT
from jobs.models.verbs import Actor
from jobs.models.webhook import URL_MOST
from jobs.system.notices import interests, listening, secrets
from jobs.system.notices.body import sees_details

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
    interests.refuse_without_admin(actor, owner)
    interests.refuse_without_runs(actor, owner)
    fields = _checked({"name": "", "events": [], "url": "", **given}, owner=owner, actor=actor)
    if WebhookEndpoint.objects.filter(owner=owner).count() >= ENDPOINTS_MOST:
        raise OptionError("url", f"would be one of more than {ENDPOINTS_MOST} endpoints")
    _refuse_details(fields.get("has_details", False), owner, actor)
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
    _audit("create webhook", endpoint, actor, url=_host_of(endpoint), events=endpoint.events)
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
    refuse_text("reason", reason, most=REASON_LIMIT)
    interests.refuse_without_admin(actor, endpoint.owner)
    row = _locked(endpoint)
    changed = interests.apply(row, _checked(given, owner=row.owner, actor=actor))
    if not changed:
        return []
    if interests.sends_other(row, changed):
        _refuse_details(row.has_details, row.owner, actor)
        interests.confirm(row, actor)
    interests.note_switch(row, changed, reason)
    if "is_active" in changed:
        row.failure_count, row.retry_at = 0, None
    row.save()
    word = interests.word_of_change(row, changed)
    _audit(f"{word} webhook", row, actor, reason=reason, changed=changed)
    listening.sync_all()
    endpoint.refresh_from_db()
    return changed


@transaction.atomic
def delete_endpoint(endpoint: WebhookEndpoint, *, actor: Actor = None, reason: str = "") -> None:
    """Delete an endpoint: it sends nothing more, and its deliveries are not shown any more."""
    refuse_text("reason", reason, most=REASON_LIMIT)
    interests.refuse_without_admin(actor, endpoint.owner)
    rows = WebhookEndpoint.objects.filter(pk=endpoint.pk)
    if rows.update(**WebhookEndpoint.DELETED, job=None):
        _audit("delete webhook", endpoint, actor, reason=reason, url=_host_of(endpoint))
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
    refuse_text("reason", reason, most=REASON_LIMIT)
    if not 0 <= old_key_seconds <= OLD_KEY_MOST:
        raise OptionError("old_key_seconds", f"is 0 to {OLD_KEY_MOST:.0f} seconds")
    interests.refuse_without_admin(actor, endpoint.owner)
    row = _locked(endpoint)
    shown, sealed = secrets.new_key(row.place)
    row.old_secret, row.old_secret_key = row.secret, row.secret_key
    row.old_secret_until = now() + timedelta(seconds=old_key_seconds)
    row.secret, row.secret_key = sealed.data, sealed.key
    row.save()
    _audit("rotate webhook", row, actor, reason=reason, old_key_seconds=old_key_seconds)
    endpoint.refresh_from_db()
    return MadeEndpoint(endpoint, shown)


@transaction.atomic
def send_test(
    endpoint: WebhookEndpoint, *, actor: Actor = None, reason: str = ""
) -> WebhookDelivery:
    """Make a delivery of an event of its own, and send it before all others."""
    refuse_text("reason", reason, most=REASON_LIMIT)
    interests.refuse_without_admin(actor, endpoint.owner)
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
    _audit("test webhook", endpoint, actor, reason=reason)
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
    refuse_text("reason", reason, most=REASON_LIMIT)
    if delivery_ids is None:
        failed = endpoint.deliveries.filter(state=DeliveryState.FAILED).order_by("pk")
        delivery_ids = list(failed.values_list("pk", flat=True)[:REPLAYS_MOST])
    if len(delivery_ids) > REPLAYS_MOST:
        raise OptionError("deliveries", f"holds at most {REPLAYS_MOST}")
    interests.refuse_without_admin(actor, endpoint.owner)
    interests.refuse_without_runs(actor, endpoint.owner)
    rows = endpoint.deliveries.filter(pk__in=delivery_ids).exclude(state=DeliveryState.WAITING)
    count = rows.update(state=DeliveryState.WAITING, next_at=now(), attempt_count=0, ended_at=None)
    if count:
        WebhookEndpoint.objects.filter(pk=endpoint.pk).update(retry_at=None)
        _audit("replay webhook", endpoint, actor, reason=reason, count=count)
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


def _refuse_details(has_details: bool, owner: Owner | None, actor: Any) -> None:
    if has_details and not sees_details(actor, owner.pk if owner is not None else None):
        whose = owner.slug if owner is not None else "the whole installation"
        raise AccessDenied("operate (to see arguments and results)", whose)


def _locked(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    rows = WebhookEndpoint.objects.select_for_update(of=("self",)).select_related("owner")
    return rows.get(pk=endpoint.pk)


def _host_of(endpoint: WebhookEndpoint) -> str:
    """Return scheme, host and port: a path may hold a secret."""
    return build_request("POST", endpoint.url, headers={}, body="", json=None).url.shown


def _audit(
    action: str, endpoint: WebhookEndpoint, actor: Any, *, reason: str = "", **details: Any
) -> None:
    AuditEntry.write(action, on=endpoint, actor=actor, reason=reason, name=endpoint.name, **details)
