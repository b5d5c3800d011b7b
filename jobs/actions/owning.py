"""Which owner a body names."""

from __future__ import annotations

from typing import Any

from jobs.actions.performing import refuse_without_scope
from jobs.core.errors import OptionError, UnknownOwner
from jobs.models import Owner, Scope
from jobs.models.access import Access


def owner_named(access: Access, slug: str | None, scope: Scope) -> Owner:
    """Return the owner that a body names, or the caller's only one; raise if there is none.

    Without a slug the row is not read: verbs load the owner that they act for. An owner of other
    callers is answered as an unknown one.
    """
    if slug is None:
        if len(access.by_owner) != 1 or access.everywhere:
            raise OptionError("owner", "is required, as you have several")
        [owner_id] = access.by_owner
        owner = Owner(pk=owner_id)
    else:
        rows = Owner.objects.filter(slug=slug)
        if not access.everywhere:
            rows = rows.filter(pk__in=list(access.by_owner))
        found = rows.first()
        if found is None:
            raise UnknownOwner(slug)
        owner = found
    refuse_without_scope(access, scope, owner.pk)
    return owner


def owner_of_new(access: Access, body: Any) -> Owner | None:
    """Return the owner of a row to be created; None: it is for all owners."""
    if getattr(body, "is_for_all", not hasattr(body, "owner")):
        return None
    return owner_named(access, body.owner, Scope.ADMIN)
