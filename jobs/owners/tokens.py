"""API tokens: created, found by their secret, and revoked.

A secret has 256 random bits. Only its SHA-256 is stored, so a stolen database opens nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models.functions import Now

from jobs.core import barrier, prepared
from jobs.core.errors import AccessDenied, OptionError
from jobs.core.inputs import refuse_naive, refuse_name
from jobs.core.sql import now
from jobs.models import ApiToken, AuditEntry, Owner, Scope
from jobs.models.access import access_of
from jobs.models.token import NAME_LIMIT, columns_of
from jobs.models.verbs import Actor

MARK: Final = "fs_"
"""The beginning of every secret, by which scanners of source code recognise it."""
_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"
"""Letters of a prefix; without those that look like others."""
_PREFIX_LENGTH: Final = 8
_SECRET_LIMIT: Final = 100


class MadeToken(NamedTuple):
    """A new token, and its secret, which is not stored."""

    token: ApiToken
    secret: str


def make_token(
    name: str,
    *,
    scopes: Collection[str],
    owner: Owner | None = None,
    expires_at: datetime | None = None,
    actor: Actor = None,
) -> MadeToken:
    """Make a token for one owner, or for all (None); return it with its secret.

    Raises OptionError for a bad name, scope or time; AccessDenied if the actor lacks the scope
    `admin` there, or a scope of the new token.
    """
    refuse_name("name", name, most=NAME_LIMIT)
    if not name.strip():
        raise OptionError("name", "is empty; name the program that uses the token")
    chosen = _checked(scopes)
    if expires_at is not None:
        refuse_naive("expires_at", expires_at)
        if expires_at <= now():
            raise OptionError("expires_at", "has passed already")
    if actor is not None:
        _refuse_wider(actor, owner, {Scope.ADMIN, *chosen})
    prefix = MARK + "".join(secrets.choice(_LETTERS) for _ in range(_PREFIX_LENGTH))
    secret = f"{prefix}_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        token = ApiToken.objects.create(
            name=name,
            owner=owner,
            prefix=prefix,
            digest=_digest(secret),
            scopes=[scope.value for scope in Scope if scope in chosen],
            expires_at=expires_at,
            has_maker=actor is not None,
            **columns_of(actor, "created_by", "created_by_token"),
        )
        AuditEntry.write(
            "create token", on=token, actor=actor, name=str(token), scopes=token.scopes
        )
    token.refresh_from_db()
    return MadeToken(token, secret)


def revoke_token(token: ApiToken, *, actor: Actor = None, reason: str = "") -> bool:
    """Refuse a token from the next request on; say whether it was usable before.

    Repeating it is harmless. Raises AccessDenied if the actor lacks the scope `admin` there.
    """
    if actor is not None:
        _refuse_wider(actor, token.owner, {Scope.ADMIN})
    with transaction.atomic():
        revoked = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now())
        if revoked:
            AuditEntry.write("revoke token", on=token, actor=actor, reason=reason, name=str(token))
    token.refresh_from_db()
    return bool(revoked)


def use_token(secret: str) -> ApiToken | None:
    """Return the usable token with this secret, and hide rows that it may not see.

    None for an unknown, expired or revoked one, and for one whose maker is gone. The use is noted
    at most once a minute. One statement, and those that read the rights of its maker if it has one.
    The caller calls `barrier.lower()` at the end of its request.
    """
    if not secret.startswith(MARK) or len(secret) > _SECRET_LIMIT or not secret.isascii():
        return None
    # Prepared: to plan it takes longer than to run it, and each request begins with it.
    rows = prepared.run_over_all("owners/use_token", {"digest": _digest(secret)})
    if not rows:
        return None
    [row] = rows
    token = ApiToken(**row | {"scopes": json.loads(row["scopes"])})
    if not token.has_maker:
        if token.owner_id is not None:
            barrier.raise_for([token.owner_id])
    else:
        found = access_of(token)
        # As without a maker: the rows of its owners, of which `read` decides what it sees.
        if not found.everywhere:
            barrier.raise_for(found.reached)
    return token


def _checked(scopes: Collection[str]) -> set[Scope]:
    if isinstance(scopes, str) or not scopes or not set(scopes) <= set(Scope.values):
        raise OptionError("scopes", f"is a list of at least one of: {', '.join(Scope.values)}")
    return {Scope(scope) for scope in scopes}


def _refuse_wider(actor: object, owner: Owner | None, needed: Collection[Scope]) -> None:
    """Raise AccessDenied if the actor lacks one of these scopes for the owner."""
    whose = owner.slug if owner is not None else "the whole installation"
    for scope in sorted(needed):
        if not access_of(actor).has(scope, owner.pk if owner is not None else None):
            raise AccessDenied(scope.value, whose)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
