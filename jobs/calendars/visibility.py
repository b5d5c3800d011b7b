"""Which calendars, and which of their attachments, a user sees."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models
from django.db.models import Exists, OuterRef, Q

from jobs.models import Attachment
from jobs.models.access import access_of

Rows = TypeVar("Rows", bound="models.QuerySet[Any]")


def visible_rows(rows: Rows, user: Any, *, path: str = "") -> Rows:
    """Return the rows whose calendar (at `path`, such as "calendar__") a user sees.

    Calendars of the user's owners, and shared ones that apply to something of these owners.
    """
    if access_of(user).sees_all:
        return rows
    mine = access_of(user).owner_ids()
    key = f"{path.removesuffix('__')}_id" if path else "pk"
    applying = visible_attachments(Attachment.objects.filter(calendar=OuterRef(key)), user)
    shared = Q(**{f"{path}owner__isnull": True}) & Q(Exists(applying))
    return rows.filter(Q(**{f"{path}owner__in": mine}) | shared)


def visible_attachments(
    attachments: models.QuerySet[Attachment], user: Any
) -> models.QuerySet[Attachment]:
    """Return the attachments to a user's owners, and to these owners' jobs, targets and groups."""
    if access_of(user).sees_all:
        return attachments
    mine = access_of(user).owner_ids()
    return attachments.filter(
        Q(owner__in=mine)
        | Q(job__owner__in=mine)
        | Q(target__owner__in=mine)
        | Q(group__owner__in=mine)
    )
