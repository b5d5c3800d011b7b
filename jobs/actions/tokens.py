"""Actions on API tokens."""

from __future__ import annotations

from typing import Annotated, Final

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict, Field

from jobs.actions.declared import Action, Creation, Noun, Shown, sentence
from jobs.actions.interests import ForAll, Whose, without_owner
from jobs.actions.texts import Moment, Text
from jobs.models import ApiToken, Scope
from jobs.models.token import NAME_LIMIT
from jobs.owners.tokens import make_token, revoke_token


class TokenToCreate(BaseModel):
    """A token to be created. It may have no scope that the caller lacks."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[
        Text,
        Field(min_length=1, max_length=NAME_LIMIT, pattern=r"\S"),
        Shown(_("Name"), _("The program that uses it.")),
    ]
    scopes: Annotated[
        set[Scope], Field(min_length=1), Shown(_("Scopes"), choices=lambda: Scope.choices)
    ]
    owner: Whose = None
    is_for_all: ForAll = False
    expires_at: Annotated[
        Moment | None, Shown(_("Expires at"), _("Empty: it does not expire."))
    ] = None


TOKENS: Final = Noun(
    name="token",
    rows=lambda: ApiToken.objects.select_related("owner"),
    key="prefix",
    key_kind="str",
    view="jobs.view_apitoken",
    seen_with=(Scope.READ, Scope.ADMIN),
    creation=Creation(
        label=_("Create a token"),
        explains=_("A program sends it with each request: Authorization: Bearer …"),
        permission="jobs.add_apitoken",
        body=TokenToCreate,
        make=lambda body, owner, actor: make_token(owner=owner, actor=actor, **without_owner(body)),
        row=lambda made: made.token,
        secret=lambda made: str(made.secret),
        done=sentence(_("This is the token. It is not shown again.")),
    ),
    actions=(
        Action(
            name="revoke",
            label=_("Revoke"),
            explains=_("Programs that use this token are refused from their next request on."),
            scope=Scope.ADMIN,
            permission="jobs.change_apitoken",
            applies=lambda tokens: tokens.filter(revoked_at=None),
            refused=_("%(row)s is revoked already."),
            is_repeatable=True,
            act=lambda token, call: revoke_token(token, **call.audited),
            done=sentence(_("%(row)s is revoked.")),
            is_destructive=True,
        ),
    ),
)
