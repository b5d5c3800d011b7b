"""One submission: its progress, its forecast, and the share of its owner while it runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count
from django.http import HttpResponse
from django.utils.translation import gettext as _

from jobs.actions import find
from jobs.actions.rollouts import ROLLOUT_ACTIONS
from jobs.actions.submissions import SUBMISSIONS
from jobs.core import barrier
from jobs.core.counting import within
from jobs.core.sql import now
from jobs.core.states import State
from jobs.forecast.estimate import Forecast
from jobs.forecast.will_it_fit import forecast_rest, rough_forecast
from jobs.models import Rollout, RolloutState, Run, Submission
from jobs.models.submission import Progress
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.pieces import SIGNS
from jobs.pages.kit.visit import Visit, page
from jobs.rollouts.reads import steps_of, why_it_waits
from jobs.rollouts.rounds import STOPPED
from jobs.runs.reads.pace import pace_of
from jobs.system.rollups.usage import Usage, usage

MILLISECONDS: Final = 1_000
"""A page waits no longer for a forecast."""
SHARE_SPAN: Final = timedelta(hours=1)
"""The share that its owner received is that of this span."""
ERRORS: Final = 10
OF_ROLLOUT: Final = replace(SUBMISSIONS, actions=ROLLOUT_ACTIONS)
OTHERS: Final = replace(
    SUBMISSIONS, actions=tuple(one for one in SUBMISSIONS.actions if one not in ROLLOUT_ACTIONS)
)


@page("submissions", permission="jobs.view_submission")
def submission(visit: Visit, key: int) -> HttpResponse:
    """Show one submission."""
    found: Submission = find(SUBMISSIONS, key, by=visit.access)
    progress = found.page_progress = found.progress
    rollout = Rollout.objects.filter(pk=found.pk).first()
    return visit.show(
        "jobs/pages/submissions/one.html",
        live="jobs/pages/submissions/one_live.html",
        submission=found,
        progress=progress,
        states=[(state, progress[state]) for state in SIGNS if progress[state]],
        pace=pace_of(found, now=now(), progress=progress),
        errors=_errors(found) if progress[State.FAILED] else [],
        admin_url=visit.admin_address("submission_change", found.pk),
        buttons=buttons(visit, OTHERS, found),
        rollout_buttons=[] if rollout is None else buttons(visit, OF_ROLLOUT, found),
        rollout=rollout,
        steps=[] if rollout is None else steps_of(rollout),
        waits=_waits(rollout),
        **_ahead(found, progress),
    )


def _waits(rollout: Rollout | None) -> str:
    """Return what the next wave waits for; empty if there is none."""
    if rollout is None or rollout.state == RolloutState.ENDED:
        return ""
    if rollout.wave == len(rollout.waves) and rollout.state not in STOPPED:
        return ""
    return why_it_waits(rollout)


def _ahead(found: Submission, progress: Progress) -> dict[str, Any]:
    """Return the forecast of the runs that wait, and the share of the owner, while it runs."""
    if progress.is_done:
        return {"forecast": None, "usage": None}
    # They count what others' runs need of the slots, and name no other owner.
    with barrier.lifted():
        forecast: Forecast | None = within(MILLISECONDS, lambda: forecast_rest(found))
        if forecast is None:
            forecast = within(MILLISECONDS, lambda: rough_forecast(found))
        moment = now()
        share: Usage = usage(found.owner, start=moment - SHARE_SPAN, end=moment)
    return {"forecast": forecast, "usage": share}


def _errors(found: Submission) -> list[tuple[str, int]]:
    """Return the classes of errors of the failed runs, and how many have each."""
    failed = Run.objects.filter(submission=found, state=State.FAILED).order_by()
    counts = failed.values_list("error_type").annotate(count=Count("*")).order_by("-count")
    return [(name or _("without a name"), count) for name, count in counts[:ERRORS]]
