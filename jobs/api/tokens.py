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
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.core import barrier
from jobs.models import ApiToken, Scope
from jobs.models.token import PREFIX_LIMIT

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
    return newest_first(request, page, _administered(request), Token.of, of="tokens")


@router.get("/{prefix}", auth=READS, response=Token, operation_id="get_token")
def get_token(request: HttpRequest, prefix: str) -> Token:
    """Return one token, by its prefix."""
    tokens = _administered(request)
    is_text = prefix.isascii() and prefix.isprintable() and len(prefix) <= PREFIX_LIMIT
    return Token.of((tokens if is_text else tokens.none()).get(prefix=prefix))


def _administered(request: HttpRequest) -> Any:
    return caller(request).narrowed(TOKENS.rows(), scope=Scope.ADMIN)


def _shown(_request: HttpRequest, _response: HttpResponse, done: Done) -> Token:
    with barrier.lifted():
        return Token.of(done.row)


def _made(_request: HttpRequest, _response: HttpResponse, done: Done) -> Token:
    return TokenCreated.of(done.row, token=done.value.secret)


serve_creation(router, TOKENS, Answer(schema=TokenCreated, of=_made), key="prefix")
serve(router, TOKENS, "{prefix}", Answer(schema=Token, of=_shown))
