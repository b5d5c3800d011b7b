"""The page of failures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.http import HttpResponse

from jobs.actions.filters.runs import FailureFilter
from jobs.actions.runs import RUNS
from jobs.core.crypto import Place
from jobs.core.ids import time_of
from jobs.core.language import in_language
from jobs.models import Owner, Run
from jobs.models.access import Access
from jobs.pages.kit.actions import offered_for_many
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit, page
from jobs.runs.reads.dead_letters import ErrorGroup, by_error, group_failed
from jobs.runs.reads.errors import shown
from jobs.runs.reads.log import last_texts

GROUPS: Final = 500
"""Groups of one owner, task and error that are read at most."""
SHOWN: Final = 100
NAMED: Final = 3
WITH_LOG: Final = 20
"""Groups with the last lines of their newest run."""
LINES: Final = 20


@page("failures", permission="jobs.view_run")
def failures(visit: Visit) -> HttpResponse:
    """Show the failed runs, grouped by error and task."""
    form = FilterForm(visit, FailureFilter)
    rows = form.narrow(visit.rows(Run.objects.all()))
    found = group_failed(rows, access=visit.access, most=GROUPS)
    groups = by_error(found.groups)
    return visit.show(
        "jobs/pages/failures/list.html",
        live="jobs/pages/failures/live.html",
        form=form,
        here=visit.request.get_full_path(),
        groups=list(_rows(groups[:SHOWN], visit.access)),
        is_complete=found.is_complete and len(groups) <= SHOWN,
        may_retry=any(one.name == "retry" for one in offered_for_many(RUNS, by=visit.access)),
    )


def _rows(groups: Iterable[ErrorGroup], access: Access) -> Iterable[dict[str, Any]]:
    listed = list(groups)
    keys = {key for group in listed for key in group.owner_ids}
    slugs = dict(Owner.objects.filter(pk__in=keys).values_list("pk", "slug"))
    newest = [group.newest for group in listed[:WITH_LOG]]
    seen = [one for one in newest if access.sees_arguments(one.owner_id) and one.owner_id in slugs]
    places = {one.newest: Place(slugs[one.owner_id], one.newest) for one in seen}
    texts = last_texts(places, most=LINES)
    for group in listed:
        names = sorted(slugs[key] for key in group.owner_ids if key in slugs)
        yield {
            "group": group,
            "owners": names[:NAMED],
            "more": len(names[NAMED:]),
            "message": in_language(shown(group.newest.message)),
            "first_at": time_of(group.oldest),
            "last_at": group.newest.last_ended_at,
            "run": group.newest.newest,
            "log": "\n".join(texts.get(group.newest.newest, ())),
        }
