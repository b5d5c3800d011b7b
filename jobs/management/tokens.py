"""The part of `manage.py fleet` about API tokens: create, revoke, list."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import CommandError

from jobs.client.terminal import say
from jobs.management.arguments import whole

if TYPE_CHECKING:
    from jobs.models import ApiToken

DAYS_LIMIT: Final = 3_660


def add_part(parts: Any) -> None:
    token = parts.add_parser("token", help="create, revoke or list the tokens of the REST API")
    token.set_defaults(act_on=handle)
    acts = token.add_subparsers(dest="act", required=True, metavar="ACT")
    create = acts.add_parser(
        "create",
        help="create a token and print it",
        description="The token is printed once and is not stored: keep it as a secret.",
    )
    create.add_argument("name", metavar="NAME", help="the program that uses it")
    create.add_argument(
        "--scopes",
        nargs="+",
        required=True,
        metavar="SCOPE",
        help="read, submit, operate, approve or admin; one or several",
    )
    whose = create.add_mutually_exclusive_group(required=True)
    whose.add_argument("--owner", help="the slug of its owner")
    whose.add_argument("--all-owners", action="store_true", help="for the whole installation")
    create.add_argument(
        "--days", type=whole(1, DAYS_LIMIT), help="until it expires (default: never)"
    )
    revoke = acts.add_parser("revoke", help="refuse a token from the next request on")
    revoke.add_argument(
        "prefix", metavar="PREFIX", help="how the token begins, such as fs_ab12cd34"
    )
    revoke.add_argument("--reason", default="", help="stored in the audit")
    shown = acts.add_parser("list", help="tokens, newest first")
    shown.add_argument("--owner", help="those of this owner only")
    for act in (create, revoke, shown):
        act.add_argument("--json", action="store_true", help="one JSON object")


def handle(given: dict[str, Any]) -> None:
    from jobs.core.errors import FairshiftError

    act = {"create": _create, "revoke": _revoke, "list": _list}[given["act"]]
    try:
        act(given)
    except FairshiftError as error:
        raise CommandError(str(error)) from error


def _create(given: dict[str, Any]) -> None:
    from jobs.core.sql import now
    from jobs.owners.tokens import make_token
    from jobs.runs.preparation import load_owner

    made = make_token(
        given["name"],
        scopes=given["scopes"],
        owner=None if given["all_owners"] else load_owner(given["owner"]),
        expires_at=now() + timedelta(days=given["days"]) if given["days"] else None,
    )
    if given["json"]:
        say(json.dumps({**_facts(made.token), "token": made.secret}))
    else:
        say(made.secret)


def _revoke(given: dict[str, Any]) -> None:
    from jobs.models import ApiToken
    from jobs.owners.tokens import revoke_token

    token = ApiToken.objects.select_related("owner").filter(prefix=given["prefix"]).first()
    if token is None:
        raise CommandError(
            f"No token begins with {given['prefix']}: see manage.py fleet token list."
        )
    was_usable = revoke_token(token, reason=given["reason"])
    if given["json"]:
        say(json.dumps(_facts(token)))
    else:
        say(f"{token} {'is revoked' if was_usable else 'was revoked before'}.")


def _list(given: dict[str, Any]) -> None:
    from jobs.models import ApiToken

    tokens = ApiToken.objects.select_related("owner")
    if given["owner"]:
        tokens = tokens.filter(owner__slug=given["owner"])
    if given["json"]:
        say(json.dumps({"tokens": [_facts(token) for token in tokens]}))
        return
    for token in tokens:
        whose = token.owner.slug if token.owner else "all owners"
        state = "revoked" if token.revoked_at else f"used {token.last_used_at or 'never'}"
        say(f"{token.prefix}  {whose}  {','.join(token.scopes)}  {state}  {token.name}")


def _facts(token: ApiToken) -> dict[str, Any]:
    moments = ("created_at", "expires_at", "revoked_at", "last_used_at")
    return {
        "prefix": token.prefix,
        "name": token.name,
        "owner": token.owner.slug if token.owner else None,
        "scopes": token.scopes,
        **{name: _text(getattr(token, name)) for name in moments},
    }


def _text(moment: Any) -> str | None:
    return moment.isoformat() if moment else None
