"""The audit: what users and tokens did, to which object, and why. Read-only."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from jobs.actions.texts import Moment, Slug, Text
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.models import AuditEntry, Scope
from jobs.owners.audited import AuditFilter, audited, slugs_of

router = Router(tags=["audit"])
READS = needs(Scope.READ, "jobs.view_auditentry")

Word = Annotated[Text, Field(max_length=64)]


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


class AuditQuery(Schema):
    """The filters of the audit; an action must match all of them."""

    owner: Slug | None = None
    actor: Annotated[Text, Field(max_length=150)] | None = Field(None, description="In full.")
    action: Word | None = Field(None, description="Such as `cancel`.")
    object_type: Word | None = Field(None, description="Such as `run`.")
    object_id: Word | None = None
    after: Moment | None = Field(None, description="At this time or later.")
    before: Moment | None = Field(None, description="Before this time.")


@router.get("", auth=READS, response=PageOf[Audited], operation_id="list_audit")
def list_audit(request: HttpRequest, query: Query[AuditQuery], page: Page) -> PageOf[Audited]:
    """Return what was done to the caller's owners and their rows, newest first."""
    access = caller(request)
    cursor = Cursor.read(page, of="audit", caller=access.actor, filters=query.model_dump_json())
    wanted = AuditFilter(**query.model_dump())
    rows, following = cursor.newest_first(audited(wanted, access=access))
    slugs = slugs_of(rows, access=access)
    return PageOf[Audited](items=[_shown(entry, slugs) for entry in rows], next=following)


def _shown(entry: AuditEntry, slugs: dict[int, str]) -> Audited:
    return Audited(
        id=entry.pk,
        at=entry.at,
        actor=entry.actor_name,
        action=entry.action,
        object_type=entry.object_type,
        object_id=entry.object_id,
        owner=slugs.get(entry.owner_id) if entry.owner_id is not None else None,
        reason=entry.reason,
        details=entry.details,
    )
