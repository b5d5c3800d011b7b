"""Signatures of webhooks, as the Standard Webhooks specification has them. Pure.

Signed are the id, the time and the body: `<id>.<seconds since 1970>.<body>` by HMAC-SHA256. Each
valid key signs, so a receiver may change its key at any time while both are valid.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Sequence
from os import urandom
from typing import Final

SECRET_BYTES: Final = 32
PREFIX: Final = "whsec_"


def new_secret() -> bytes:
    """Return a new random key."""
    return urandom(SECRET_BYTES)


def shown(secret: bytes) -> str:
    """Return a key as receivers' libraries take it."""
    return PREFIX + b64encode(secret).decode()


def signature(secret: bytes, *, event_id: str, at: int, body: str) -> str:
    """Return one signature, with its version."""
    digest = hmac.digest(secret, f"{event_id}.{at}.{body}".encode(), "sha256")
    return f"v1,{b64encode(digest).decode()}"


def headers(secrets: Sequence[bytes], *, event_id: str, at: int, body: str) -> dict[str, str]:
    """Return the headers of a delivery; `at` is in seconds since 1970."""
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(
            signature(secret, event_id=event_id, at=at, body=body) for secret in secrets
        ),
    }
