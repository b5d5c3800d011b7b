"""One owner: its work and share now, what it used, its limits and its members."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.utils import timezone

from jobs.actions import find, may_create
from jobs.actions.members import MEMBERS
from jobs.actions.owners import OWNERS
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Membership, Owner, Scope
from jobs.owners.work import work_of
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.polls import PART
from jobs.pages.kit.visit import Visit, page
from jobs.pages.owners.words import now_pill, why_now
from jobs.system.rollups.objectives import SPANS, Objective, objectives
from jobs.system.rollups.usage import daily_usage, usage

DAYS: Final = 7
MEMBERS_SHOWN: Final = 100
"""Most members that are shown; the admin has all."""


@page("owners", permission="jobs.view_owner")
def owner(visit: Visit, slug: str) -> HttpResponse:
    """Show one owner."""
    found: Owner = find(OWNERS, slug, by=visit.access)
    with barrier.lifted():
        [standing] = work_of([found]).values()
    facts: dict[str, Any] = {
        "owner": found,
        "standing": standing,
        "pill": now_pill(found, standing),
        "why": why_now(found, standing),
    }
    if PART not in visit.request.headers:
        facts |= _more(visit, found)
    return visit.show("jobs/pages/owners/one.html", live="jobs/pages/owners/one_live.html", **facts)


def _more(visit: Visit, found: Owner) -> dict[str, Any]:
    """Return what is not renewed while the page is open."""
    end = now()
    with barrier.lifted():
        aims = objectives([found.pk])
        used = usage(found, start=end - timedelta(days=1), end=end)
        days = daily_usage(found, days=DAYS, zone=timezone.get_current_timezone())
    seconds = [day.worker_seconds for day in days if day.worker_seconds is not None]
    return {
        "used": used,
        "objective": aims[0] if aims else None,
        "burns": _burns(aims[0]) if aims else [],
        "days": days[::-1],
        "seconds": seconds if any(seconds) else [],
        "may_plan": visit.access.sees_all,
        "members": _members(visit, found),
        "may_change_members": visit.may("jobs.change_membership", Scope.ADMIN, found.pk),
        "may_add_members": may_create(MEMBERS, by=visit.access),
        "admin_url": visit.admin_address("owner_change", found.pk),
        "buttons": buttons(visit, OWNERS, found),
    }


def _burns(one: Objective) -> list[tuple[str, float | None, float | None]]:
    """Return name, part in time and burn rate of each span."""
    return [(name, one.in_time(span), one.burn(span)) for span, name in SPANS.items()]


def _members(visit: Visit, found: Owner) -> list[Membership] | None:
    """Return the members; None for a visitor who may not see them."""
    if not visit.may("jobs.view_membership", Scope.ADMIN, found.pk):
        return None
    # Users have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        rows = Membership.objects.filter(owner=found).select_related("user")
        return list(rows.order_by("-pk")[:MEMBERS_SHOWN])
