"""API tokens: created and shown once, listed without their secrets, revoked."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import ConfigDict, Field

from jobs.actions import Done
from jobs.actions.texts import Moment, Slug, Text
from jobs.actions.tokens import TOKENS
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.owning import owner_of_request
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.problems import first_of
from jobs.core import barrier
from jobs.models import ApiToken, Scope
from jobs.models.access import Access
from jobs.models.token import NAME_LIMIT, PREFIX_LIMIT, ApiTokenQuerySet
from jobs.owners.tokens import MadeToken, make_token

router = Router(tags=["tokens"])
READS = needs(Scope.ADMIN, "jobs.view_apitoken")
CREATES = needs(Scope.ADMIN, "jobs.add_apitoken")


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
    def of(cls, token: ApiToken) -> Token:
        return cls(**cls.facts(token))

    @staticmethod
    def facts(token: ApiToken) -> dict[str, Any]:
        """Return the fields of a token that was loaded with its owner."""
        return {
            "prefix": token.prefix,
            "name": token.name,
            "owner": token.owner.slug if token.owner else None,
            "scopes": [Scope(scope) for scope in token.scopes],
            "created_at": token.created_at,
            "expires_at": token.expires_at,
            "revoked_at": token.revoked_at,
            "last_used_at": token.last_used_at,
        }


class TokenCreated(Token):
    """A new token with its secret."""

    token: str = Field(description="The secret. It is shown only now, and not stored.")

    @classmethod
    def of_made(cls, made: MadeToken) -> TokenCreated:
        return cls(**cls.facts(made.token), token=made.secret)


class TokenToCreate(Schema):
    """A token to be created. It may have no scope that the caller lacks."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT, pattern=r"\S")]
    scopes: set[Scope] = Field(min_length=1)
    owner: Slug | None = Field(None, description="Needed by callers with several owners.")
    expires_at: Moment | None = None


@router.get("", auth=READS, response=PageOf[Token], operation_id="list_tokens")
def list_tokens(request: HttpRequest, page: Page) -> PageOf[Token]:
    """Return tokens, newest first."""
    access = caller(request)
    cursor = Cursor.read(page, of="tokens", caller=access.actor)
    tokens, following = cursor.newest_first(_visible(access))
    return PageOf[Token](items=[Token.of(token) for token in tokens], next=following)


@router.post("", auth=CREATES, response={201: TokenCreated}, operation_id="create_token")
def create(request: HttpRequest, response: HttpResponse, body: TokenToCreate) -> TokenCreated:
    """Create a token for one owner, and return its secret."""
    access = caller(request)
    owner = owner_of_request(access, body.owner, Scope.ADMIN)
    with barrier.lifted():
        owner.refresh_from_db()
        made = make_token(
            body.name,
            scopes=body.scopes,
            owner=owner,
            expires_at=body.expires_at,
            actor=access.actor,
        )
    response["Location"] = f"{request.path}/{made.token.prefix}"
    response["Cache-Control"] = "no-store"
    return TokenCreated.of_made(made)


@router.get("/{prefix}", auth=READS, response=Token, operation_id="get_token")
def get_token(request: HttpRequest, prefix: str) -> Token:
    """Return one token, by its prefix."""
    return Token.of(_found(request, prefix))


def _shown(_request: HttpRequest, _response: HttpResponse, done: Done) -> Token:
    with barrier.lifted():
        return Token.of(done.row)


serve(router, TOKENS, "{prefix}", Answer(schema=Token, of=_shown))


def _visible(access: Access) -> ApiTokenQuerySet:
    return access.narrowed(ApiToken.objects.select_related("owner"), scope=Scope.ADMIN)


def _found(request: HttpRequest, prefix: str) -> ApiToken:
    tokens = _visible(caller(request))
    is_text = prefix.isascii() and prefix.isprintable() and len(prefix) <= PREFIX_LIMIT
    return first_of(tokens.filter(prefix=prefix) if is_text else tokens.none())
