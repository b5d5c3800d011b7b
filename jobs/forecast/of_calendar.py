"""Will the runs that wait for a calendar fit into its windows? Forecasts of their submissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Q

from jobs.core.counting import within
from jobs.core.states import State
from jobs.forecast.estimate import Forecast
from jobs.forecast.will_it_fit import forecast_rest
from jobs.models import Run, Submission

MOST: Final = 10
"""Submissions with a forecast, those with the most waiting runs."""
COUNT_MILLISECONDS: Final = 1_000
MILLISECONDS: Final = 500
"""The time for one forecast."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The held runs of a submission; None: their forecast takes too long."""

    submission: Submission
    count: int
    forecast: Forecast | None


def waiting_for(runs: Q) -> list[Waiting] | None:
    """Return the submissions with held runs of a condition; None if counting takes too long.

    The condition is that of the runs that a calendar applies to, and a visitor sees.
    """
    held: Any = Run.objects.filter(runs, state=State.HELD, submission__isnull=False).order_by()
    counts = held.values_list("submission").annotate(count=Count("*")).order_by("-count")[:MOST]
    found = within(COUNT_MILLISECONDS, lambda: list(counts))
    if found is None:
        return None
    rows = Submission.objects.select_related("owner").in_bulk([key for key, _count in found])
    return [Waiting(rows[key], count, _forecast(rows[key])) for key, count in found]


def fits(found: Forecast) -> bool:
    """Say whether all runs of a forecast end, and start in the first window of theirs."""
    return found.finishes_at is not None and not found.left_over


def _forecast(submission: Submission) -> Forecast | None:
    return within(MILLISECONDS, lambda: forecast_rest(submission))
