"""Lists of the audit, by filters that indexes answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from jobs.models import AuditEntry, Owner
from jobs.models.access import Access

ACTIONS: Final = (
    "submit",
    "cancel",
    "cancel runs",
    "retry",
    "retry runs",
    "retry failed runs",
    "edit arguments",
    "run now",
    "backfill",
    "pause",
    "resume",
    "limit",
    "add",
    "change",
    "delete",
    "create calendar",
    "change calendar",
    "delete calendar",
    "attach calendar",
    "detach calendar",
    "request window",
    "change window",
    "remove window",
    "approve window",
    "reject window",
    "revoke window",
    "override windows",
    "move to task",
    "move jobs to task",
    "fail unstarted",
    "import windows",
    "new feed address",
    "no feed address",
    "drain worker",
    "undrain worker",
    "make token",
    "revoke token",
    "upsert jobs",
    "import jobs",
    "refuse jobs",
)
"""Every action that the code writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """The filters of a list of the audit; None means all."""

    owner: str | None = None
    actor: str | None = None
    """The name of a user or a token, in full."""
    action: str | None = None
    object_type: str | None = None
    object_id: str | None = None
    after: datetime | None = None
    """At this time or later."""
    before: datetime | None = None


def audited(wanted: AuditFilter, *, access: Access) -> QuerySet[AuditEntry]:
    """Return what was done to a caller's owners and their rows."""
    columns = {
        "actor_name": wanted.actor,
        "action": wanted.action,
        "object_type": wanted.object_type,
        "object_id": wanted.object_id,
        "at__gte": wanted.after,
        "at__lt": wanted.before,
    }
    given = {column: value for column, value in columns.items() if value is not None}
    entries = access.narrowed(AuditEntry.objects.filter(**given))
    if wanted.owner is not None:
        entries = entries.filter(owner__in=Owner.objects.filter(slug=wanted.owner))
    return entries


def slugs_of(entries: Iterable[AuditEntry], *, access: Access) -> dict[int, str]:
    """Return the slugs of the owners of some entries; a deleted owner has none."""
    ids = {entry.owner_id for entry in entries if entry.owner_id is not None}
    owners = access.narrowed(Owner.objects.filter(pk__in=ids), path="pk")
    return dict(owners.values_list("pk", "slug"))
