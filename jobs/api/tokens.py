"""API tokens: created and shown once, listed without their secrets, revoked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from jobs.actions import Done
from jobs.actions.tokens import TOKENS
from jobs.api.kit.actions import Answer, serve, serve_creation
from jobs.api.kit.answers import facts_of
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.problems import first_of
from jobs.core import barrier
from jobs.models import ApiToken, Scope
from jobs.models.access import Access
from jobs.models.token import PREFIX_LIMIT, ApiTokenQuerySet

router = Router(tags=["tokens"])
READS = needs(Scope.ADMIN, "jobs.view_apitoken")


class Token(Schema):
    """A token, without its secret."""

    prefix: str = Field(description="How the secret begins.")
    name: str
    owner: str | None = Field(description="Null: for all owners.")
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")

    @classmethod
    def of(cls, row: ApiToken, **more: Any) -> Token:
        """Return a token that was loaded with its owner."""
        owner = row.owner.slug if row.owner else None
        return cls(**facts_of(cls, row, owner=owner, **more))


class TokenCreated(Token):
    """A new token with its secret."""

    token: str = Field(description="The secret. It is shown only now, and not stored.")


@router.get("", auth=READS, response=PageOf[Token], operation_id="list_tokens")
def list_tokens(request: HttpRequest, page: Page) -> PageOf[Token]:
    """Return tokens, newest first."""
    access = caller(request)
    cursor = Cursor.read(page, of="tokens", caller=access.actor)
    tokens, following = cursor.newest_first(_visible(access))
    return PageOf[Token](items=[Token.of(token) for token in tokens], next=following)


@router.get("/{prefix}", auth=READS, response=Token, operation_id="get_token")
def get_token(request: HttpRequest, prefix: str) -> Token:
    """Return one token, by its prefix."""
    return Token.of(_found(request, prefix))


def _shown(_request: HttpRequest, _response: HttpResponse, done: Done) -> Token:
    with barrier.lifted():
        return Token.of(done.row)


def _made(_request: HttpRequest, _response: HttpResponse, done: Done) -> Token:
    return TokenCreated.of(done.row, token=done.value.secret)


serve_creation(router, TOKENS, Answer(schema=TokenCreated, of=_made), key="prefix")
serve(router, TOKENS, "{prefix}", Answer(schema=Token, of=_shown))


def _visible(access: Access) -> ApiTokenQuerySet:
    return access.narrowed(ApiToken.objects.select_related("owner"), scope=Scope.ADMIN)


def _found(request: HttpRequest, prefix: str) -> ApiToken:
    tokens = _visible(caller(request))
    is_text = prefix.isascii() and prefix.isprintable() and len(prefix) <= PREFIX_LIMIT
    return first_of(tokens.filter(prefix=prefix) if is_text else tokens.none())
