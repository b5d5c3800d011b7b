"""Which owner a request is for."""

from __future__ import annotations

from jobs.api.kit.callers import refuse_without
from jobs.api.kit.problems import Problem
from jobs.core.errors import UnknownOwner
from jobs.models import Owner, Scope
from jobs.models.access import Access


def owner_of_request(access: Access, slug: str | None, scope: Scope) -> Owner:
    """Return the owner that a body names, or the caller's only one; raise if there is none.

    Without a slug the row is not read: verbs load the owner that they act for. An owner of other
    callers is answered as an unknown one.
    """
    if slug is None:
        if len(access.by_owner) != 1 or access.everywhere:
            raise Problem(422, "invalid", "owner: is required, as you have several", field="owner")
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
    refuse_without(access, scope, owner.pk)
    return owner
