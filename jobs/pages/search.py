"""One search box for everything; a single exact hit is opened at once."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from jobs.core.inputs import KEY_LIMIT
from jobs.pages.kit import nav
from jobs.pages.kit.rows import row_address
from jobs.pages.kit.visit import Visit, page
from jobs.runs.reads.everything import MOST, Hit, Kind, search_everything

TITLES: Final = {
    Kind.OWNER: _("Owners"),
    Kind.JOB: _("Jobs"),
    Kind.RUN: _("Runs"),
    Kind.SUBMISSION: _("Submissions"),
    Kind.TARGET: _("Targets"),
    Kind.CALENDAR: _("Calendars"),
    Kind.TASK: _("Tasks"),
}


@page(nav.SEARCH, permission="jobs.view_run")
def search(visit: Visit) -> HttpResponse:
    """Show what the term finds, or go to the only row that it names."""
    term = visit.request.GET.get("q", "").strip()
    groups = search_everything(term, access=visit.access, owner=visit.owner)
    exact = [hit for group in groups for hit in group.hits if hit.is_exact]
    if len(exact) == 1 and (to := _address(visit, exact[0])) is not None:
        return HttpResponseRedirect(to)
    shown: list[dict[str, Any]] = [
        {
            "title": TITLES[group.kind],
            "hits": [(hit, _address(visit, hit)) for hit in group.hits],
            "has_more": group.has_more,
            "is_late": group.is_late,
        }
        for group in groups
    ]
    return visit.show("jobs/pages/search.html", term=term[:KEY_LIMIT], groups=shown, most=MOST)


def _address(visit: Visit, hit: Hit) -> str | None:
    if hit.kind is not Kind.TASK:
        return row_address(visit, hit.kind, hit.key, slug=hit.owner)
    return visit.address("runs", task=hit.key)
