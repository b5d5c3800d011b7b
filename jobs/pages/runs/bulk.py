"""An action on all runs of a filter: counted first, then performed with a reason, in the audit."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.actions.filters.runs import RunFilter
from jobs.actions.runs import RUNS
from jobs.models import Run
from jobs.pages.kit.actions import ask_all, back_of, offered_for_many
from jobs.pages.kit.acts import failed
from jobs.pages.kit.errors import forbidden, not_found
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit, page


@page("runs", permission=RUNS.view, methods=("GET", "POST"))
def run_actions(visit: Visit, name: str) -> HttpResponse:
    """Ask before an action on the runs of the filter in the address, and perform it."""
    action = RUNS.action(name)
    if action is None:
        raise not_found()
    if action not in offered_for_many(RUNS, by=visit.access):
        raise forbidden()
    search = FilterForm(visit, RunFilter)
    if not search.is_valid() or not search.is_narrow:
        return failed(visit, _("Choose a filter first."), to=reverse("jobs:runs"))
    back = back_of(visit, None, RUNS, otherwise=f"{reverse('jobs:runs')}?{search.query}")
    return ask_all(visit, RUNS, action, search.narrow(Run.objects.all()), back=back)
