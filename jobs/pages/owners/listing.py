"""The list of owners, with their work and their share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse

from jobs.actions import may_create
from jobs.actions.filters.owners import OwnerFilter
from jobs.actions.owners import OWNERS
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Owner
from jobs.owners.work import work_of
from jobs.pages.kit import nav
from jobs.pages.kit.lists import FilterForm, newest_first
from jobs.pages.kit.visit import Visit, page
from jobs.pages.owners.words import now_pill
from jobs.system.rollups.usage import received_by_owner

SPAN: Final = timedelta(hours=1)
"""The span of the share that was received."""


@page("owners", permission="jobs.view_owner")
def owners(visit: Visit) -> HttpResponse:
    """Show the owners that the visitor sees, newest first."""
    form = FilterForm(visit, OwnerFilter)
    rows = form.narrow(visit.rows(Owner.objects.all(), path="pk"))
    found = newest_first(visit, rows, of="owners")
    # A share is a part of all owners' worker time and weights; it names no other owner.
    with barrier.lifted():
        standing = work_of(found.rows)
        received = received_by_owner(start=now() - SPAN, end=now()) if found.rows else {}
    shown: list[dict[str, Any]] = [
        {
            "owner": owner,
            "url": nav.address("owner", owner.slug),
            "standing": standing[owner.pk],
            "received": received.get(owner.pk, 0.0) if received else None,
            "pill": now_pill(owner, standing[owner.pk]),
        }
        for owner in found.rows
    ]
    return visit.show(
        "jobs/pages/owners/list.html",
        form=form,
        list=found,
        owners=shown,
        is_away=any(each["standing"].entitled is None for each in shown),
        admin_url=visit.admin_address("owner_changelist"),
        add_url=visit.address("create_owner") if may_create(OWNERS, by=visit.access) else None,
    )
