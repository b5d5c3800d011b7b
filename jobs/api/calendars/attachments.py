"""Attachments: a calendar is attached to owners, jobs, targets or groups of targets."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import ConfigDict, Field

from jobs.actions import Reason, refuse_without_scope
from jobs.actions.calendars import CALENDARS
from jobs.actions.owning import owner_named
from jobs.actions.texts import Name, Slug
from jobs.api.calendars.reading import READS, find_calendar
from jobs.api.calendars.router import router
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.calendars import changes, visibility
from jobs.core import barrier
from jobs.core.errors import OptionError
from jobs.models import Attachment, Calendar, Job, Owner, Scope, Target, TargetGroup
from jobs.models.access import Access

CHANGES = needs(Scope.ADMIN, "jobs.change_calendar")
WITH: Final = ("calendar", "owner", "job__owner", "target__owner", "group__owner")
_KINDS: Final[dict[str, tuple[Any, str]]] = {
    "job": (Job, "key"),
    "target": (Target, "name"),
    "group": (TargetGroup, "name"),
}
"""The model of each kind, and the column that callers name."""


class AttachmentDetails(Schema):
    """An attachment to one job, target or group; without these, to the whole owner."""

    id: int
    calendar: int
    owner: str
    job: str | None = Field(description="The key of a job.")
    target: str | None
    group: str | None

    @classmethod
    def of(cls, row: Attachment) -> AttachmentDetails:
        return cls(
            id=row.pk,
            calendar=row.calendar_id,
            owner=row.owner_of_it.slug,
            job=row.job.key if row.job else None,
            target=row.target.name if row.target else None,
            group=row.group.name if row.group else None,
        )


class AttachmentToMake(Schema):
    """A new attachment: to one job, target or group; without these, to the whole owner."""

    model_config = ConfigDict(extra="forbid")

    owner: Slug | None = Field(None, description="By default the calendar's.")
    job: Name | None = Field(None, description="The key of a job.")
    target: Name | None = None
    group: Name | None = None


@router.get(
    "/{int:calendar_id}/attachments",
    auth=READS,
    response=PageOf[AttachmentDetails],
    operation_id="list_attachments",
)
def list_attachments(
    request: HttpRequest, calendar_id: int, page: Page
) -> PageOf[AttachmentDetails]:
    """Return the attachments of a calendar that you may see, newest first."""
    rows = _visible(caller(request)).filter(calendar=find_calendar(request, calendar_id))
    return newest_first(
        request, page, rows, AttachmentDetails.of, of="attachments", filters=calendar_id
    )


@router.post(
    "/{int:calendar_id}/attachments",
    auth=CHANGES,
    response={201: AttachmentDetails},
    operation_id="attach_calendar",
)
def attach_calendar(
    request: HttpRequest, calendar_id: int, body: AttachmentToMake
) -> AttachmentDetails:
    """Attach a calendar to an owner, a job, a target or a group. Repeating it changes nothing."""
    calendar = find_calendar(request, calendar_id)
    refuse_without_scope(caller(request), Scope.ADMIN, calendar.owner_id)
    to = _to(caller(request), calendar, body)
    with barrier.lifted():
        made = changes.attach(calendar, to, actor=caller(request).actor)
        return AttachmentDetails.of(Attachment.objects.select_related(*WITH).get(pk=made.pk))


@router.delete(
    "/attachments/{int:attachment_id}",
    auth=CHANGES,
    response={204: None},
    operation_id="detach_calendar",
)
def detach_calendar(request: HttpRequest, attachment_id: int, query: Query[Reason]) -> None:
    """Delete an attachment: the calendar no longer applies there."""
    rows = _visible(caller(request)).filter(calendar__in=CALENDARS.seen_by(caller(request)))
    found: Attachment = rows.get(pk=attachment_id)
    refuse_without_scope(caller(request), Scope.ADMIN, found.calendar.owner_id)
    with barrier.lifted():
        changes.detach(found, actor=caller(request).actor, reason=query.reason)


def _visible(access: Access) -> Any:
    rows = Attachment.objects.select_related(*WITH).defer("job__payload")
    return visibility.visible_attachments(rows, access)


def _to(access: Access, calendar: Calendar, body: AttachmentToMake) -> Any:
    """Return the row that a body names; the caller has `admin` for its owner."""
    slug = body.owner
    if slug is None and calendar.owner is not None:
        slug = calendar.owner.slug
    owner = owner_named(access, slug, Scope.ADMIN)
    named = body.model_dump(exclude={"owner"}, exclude_none=True)
    if len(named) > 1:
        raise OptionError(list(named)[1], "is not allowed beside another kind: name one")
    for kind, name in named.items():
        model, column = _KINDS[kind]
        found = model.objects.select_related("owner").filter(owner=owner, **{column: name}).first()
        if found is None:
            raise OptionError(kind, f"{name!r:.80} is none of this owner's")
        return found
    return Owner.objects.get(pk=owner.pk)
