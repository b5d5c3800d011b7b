"""What if: the load of a span, replayed with other weights, caps, windows or slots.

For visitors who see all owners: the waits of one depend on the load of all. A replay is of a
sample, and ends after some seconds.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.http import HttpResponse
from django.utils.translation import gettext as _

from jobs.core.counting import within
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.forecast.replay.load import OutOfTime
from jobs.forecast.replay.objective import Aim
from jobs.forecast.replay.plan import Plan, make_plan
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.visit import Visit, page
from jobs.pages.plan.form import PlanForm
from jobs.system.rollups.histogram import GROWTH

MOST_RUNS: Final = 5_000
MOST_RUNS_OF_A_SEARCH: Final = 1_000
"""With an objective, about ten replays are made."""
SECONDS: Final = 6.0
MILLISECONDS: Final = 3_000
"""Most time of each query."""


@page("owners", permission="jobs.view_owner")
def plan(visit: Visit) -> HttpResponse:
    """Show the form, and with its data the plan."""
    if not visit.access.sees_all:
        raise forbidden()
    form = PlanForm(visit.request.GET, now=now())
    found, problem = _found(form) if form.is_asked and form.is_valid() else (None, "")
    return visit.show(
        "jobs/pages/plan/page.html",
        form=form,
        plan=found,
        problem=problem,
        rows=_rows(found) if found else [],
    )


def _found(form: PlanForm) -> tuple[Plan | None, str]:
    """Return the plan, or why there is none."""
    data = form.cleaned_data
    aim = data["seconds"] and Aim(data["seconds"], (data["percent"] or 95.0) / 100)
    asked = partial(
        make_plan,
        start=data["start"],
        end=data["end"],
        changes=form.changes,
        growth=GROWTH,
        most_runs=MOST_RUNS_OF_A_SEARCH if aim else MOST_RUNS,
        aim=aim or None,
        seconds=SECONDS,
    )
    try:
        found = within(MILLISECONDS, asked)
    except OptionError as error:
        form.refuse(error)
        return None, ""
    except OutOfTime:
        return None, _(
            "The replay takes too long here. Choose a shorter span, or use manage.py plan."
        )
    if found is None:
        return None, _("Too many runs to read here. Choose a shorter span, or use manage.py plan.")
    return found, ""


def _rows(found: Plan) -> list[dict[str, Any]]:
    recorded = {one.owner: one for one in found.recorded}
    return [{"now": recorded.get(one.owner), "then": one} for one in found.replayed]
