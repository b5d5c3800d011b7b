"""The keys that sign an endpoint's deliveries: encrypted at rest, and rotated."""

from __future__ import annotations

from uuid import uuid4

from jobs.core import crypto
from jobs.core.crypto import Sealed
from jobs.core.sql import now
from jobs.models import Owner, WebhookEndpoint
from jobs.models.webhook import KEY_FIELD
from jobs.system.notices import signing


def new_place(owner: Owner | None) -> tuple[str, crypto.Place]:
    """Return a random text for a new endpoint, and what its keys are bound to by it."""
    bound_to = uuid4().hex
    return bound_to, crypto.Place(owner.slug if owner is not None else "", bound_to)


def new_key(place: crypto.Place) -> tuple[str, Sealed]:
    """Return a new key as it is shown once, and as it is stored."""
    secret = signing.new_secret()
    return signing.shown(secret), crypto.seal(secret, field=KEY_FIELD, place=place)


def signing_keys(endpoint: WebhookEndpoint) -> list[bytes]:
    """Return the valid keys, the newest first; raise UnknownKey or Damaged."""
    keys = [_opened(endpoint, endpoint.secret, endpoint.secret_key)]
    until = endpoint.old_secret_until
    if endpoint.old_secret is not None and until is not None and until > now():
        keys.append(_opened(endpoint, endpoint.old_secret, endpoint.old_secret_key))
    return keys


def _opened(endpoint: WebhookEndpoint, data: bytes | memoryview, key: int) -> bytes:
    return crypto.open_bytes(data, key=key, field=KEY_FIELD, place=endpoint.place)
