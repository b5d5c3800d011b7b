"""Actions on API tokens."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

from jobs.actions.declared import Action, Noun, told
from jobs.models import ApiToken, Scope
from jobs.owners.tokens import revoke_token

TOKENS: Final = Noun(
    name="token",
    rows=lambda: ApiToken.objects.select_related("owner"),
    key="prefix",
    key_kind="str",
    view="jobs.view_apitoken",
    seen_with=(Scope.READ, Scope.ADMIN),
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
            done=told(_("%(row)s is revoked.")),
            is_destructive=True,
        ),
    ),
)
