"""The overview: whether all is well, and if not, what to do."""

from __future__ import annotations

from django.http import HttpResponse

from jobs.pages.kit.visit import Visit, page


@page("overview", permission="jobs.view_run")
def overview(visit: Visit) -> HttpResponse:
    """Show the overview."""
    return visit.show("jobs/pages/overview.html")
