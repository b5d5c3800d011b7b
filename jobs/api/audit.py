"""The audit: what users and tokens did, to which object, and why. Read-only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from jobs.actions.filters.owners import AuditFilter
from jobs.api.kit.answers import facts_of
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.models import AuditEntry, Scope
from jobs.owners.audited import slugs_of

router = Router(tags=["audit"])
READS = needs(Scope.READ, "jobs.view_auditentry")


class Audited(Schema):
    """One action."""

    id: int
    at: datetime
    actor: str = Field(description="The user or the token; empty: code.")
    action: str
    object_type: str
    object_id: str
    owner: str | None = Field(description="Null: it is of no owner, or of a deleted one.")
    reason: str
    details: dict[str, Any]


@router.get("", auth=READS, response=PageOf[Audited], operation_id="list_audit")
def list_audit(request: HttpRequest, query: Query[AuditFilter], page: Page) -> PageOf[Audited]:
    """Return what was done to the caller's owners and their rows, newest first."""
    access = caller(request)
    cursor = Cursor.read(request, page, of="audit", filters=query)
    rows, following = cursor.newest_first(
        query.narrow(access.narrowed(AuditEntry.objects.all()), access=access)
    )
    slugs = slugs_of(rows, access=access)
    return PageOf[Audited](items=[_shown(entry, slugs) for entry in rows], next=following)


def _shown(entry: AuditEntry, slugs: dict[int, str]) -> Audited:
    owner = slugs.get(entry.owner_id) if entry.owner_id is not None else None
    return Audited(**facts_of(Audited, entry, actor=entry.actor_name, owner=owner))
