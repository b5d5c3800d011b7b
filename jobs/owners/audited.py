"""The actions of the audit in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.core.phrases import phrase, phrase_for
from jobs.models import AuditEntry, Owner
from jobs.models.access import Access

ACTIONS: Final = (
    phrase("submit"),
    phrase("cancel"),
    phrase("cancel runs"),
    phrase("retry"),
    phrase("retry runs"),
    phrase("retry failed runs"),
    phrase("edit arguments"),
    phrase("look into"),
    phrase("run now"),
    phrase("backfill"),
    phrase_for("pause", "to pause"),
    phrase("resume"),
    phrase("limit"),
    phrase("create"),
    phrase("change"),
    phrase("delete"),
    phrase("create calendar"),
    phrase("change calendar"),
    phrase("delete calendar"),
    phrase("attach calendar"),
    phrase("detach calendar"),
    phrase("request window"),
    phrase("change window"),
    phrase("delete window"),
    phrase("approve window"),
    phrase("reject window"),
    phrase("revoke window"),
    phrase("override windows"),
    phrase("stop rollout"),
    phrase("pause rollout"),
    phrase("resume rollout"),
    phrase("release wave"),
    phrase("change waves"),
    phrase("move to task"),
    phrase("move jobs to task"),
    phrase("fail unstarted"),
    phrase("import windows"),
    phrase("publish calendar"),
    phrase("unpublish calendar"),
    phrase("drain worker"),
    phrase("undrain worker"),
    phrase("create token"),
    phrase("revoke token"),
    phrase("create webhook"),
    phrase("change webhook"),
    phrase("delete webhook"),
    phrase("enable webhook"),
    phrase("disable webhook"),
    phrase("rotate webhook"),
    phrase("test webhook"),
    phrase("replay webhook"),
    phrase("create mail subscription"),
    phrase("enable mail subscription"),
    phrase("disable mail subscription"),
    phrase("change mail subscription"),
    phrase("delete mail subscription"),
    phrase("upsert jobs"),
    phrase("import jobs"),
    phrase("refuse jobs"),
)
"""Every action that the code writes."""
_KNOWN: Final = {str(action): action for action in ACTIONS}


def action_in_words(action: str) -> str:
    """Return the name of an action as a phrase; another text as it is."""
    return _KNOWN.get(action, action)


def slugs_of(entries: Iterable[AuditEntry], *, access: Access) -> dict[int, str]:
    """Return the slugs of the owners of some entries; a deleted owner has none."""
    ids = {entry.owner_id for entry in entries if entry.owner_id is not None}
    owners = access.narrowed(Owner.objects.filter(pk__in=ids), path="pk")
    return dict(owners.values_list("pk", "slug"))
