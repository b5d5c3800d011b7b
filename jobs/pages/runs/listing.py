"""The list of runs: all that are retained, newest first."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.runs import RunFilter
from jobs.actions.runs import RUNS
from jobs.models import Run
from jobs.pages.kit import lists
from jobs.pages.kit.actions import offered_for_many
from jobs.pages.kit.visit import Visit, page
from jobs.pages.runs.saved import links_of
from jobs.runs.reads.listing import UNLISTED

WITH: Final = ("owner", "job", "target", "submission")
VIEWS: Final = (
    (_("Failed in the last 24 hours"), {"state": "failed", "age": "1d"}),
    (_("With trouble"), {"state": "problem"}),
    (_("Running"), {"state": "active"}),
    (_("Not ended"), {"state": "open"}),
)
"""Filters that the page offers as links."""


@page("runs", permission="jobs.view_run")
def runs(visit: Visit) -> HttpResponse:
    """Show the runs of a filter."""
    form = lists.FilterForm(visit, RunFilter)
    facts: dict[str, Any] = {"list": lists.ListPage([], None, None)}
    if form.is_valid():
        facts = {
            "list": _found(visit, form.wanted),
            "export": f"{reverse('jobs:api:export_runs')}?{form.query}",
            "is_scanned": bool(form.wanted.scanned),
        }
    may_save = form.is_valid() and form.is_narrow
    for_all = offered_for_many(RUNS, by=visit.access) if may_save else []
    return visit.show(
        "jobs/pages/runs/list.html",
        form=form,
        views=[(label, visit.address("runs", **query)) for label, query in VIEWS],
        saved=links_of(visit, form.query if form.is_valid() else ""),
        may_save=may_save,
        admin_url=visit.admin_address("run_changelist"),
        actions=[
            (_(one.label), f"{reverse('jobs:run_actions', args=[one.name])}?{form.query}")
            for one in for_all
        ],
        **facts,
    )


def _found(visit: Visit, wanted: RunFilter) -> lists.ListPage[Run]:
    seen = visit.access.narrowed(Run.objects.all())

    def find(after: UUID | None) -> tuple[list[Run], UUID | None]:
        found = wanted.newest(seen, access=visit.access, after=after, limit=lists.LIMIT)
        rows: Any = seen.filter(id__in=found.ids).select_related(*WITH).defer(*UNLISTED)
        return list(rows.order_by("-id")), found.last

    return lists.page_of(visit, find, of="runs", read_key=UUID)
