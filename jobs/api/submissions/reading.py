"""Submissions: list, get, forecast."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from jobs.actions.filters.submissions import SubmissionFilter
from jobs.actions.submissions import SUBMISSIONS
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import (
    RestForecast,
    RunsForecast,
    SubmissionDetails,
    SubmissionMade,
)
from jobs.core import barrier
from jobs.forecast.will_it_fit import forecast_rest
from jobs.models import Scope, Submission

READS = needs(Scope.READ, "jobs.view_submission")


@router.get("", auth=READS, response=PageOf[SubmissionMade], operation_id="list_submissions")
def list_submissions(
    request: HttpRequest, filters: Query[SubmissionFilter], page: Page
) -> PageOf[SubmissionMade]:
    """Return submissions, newest first."""
    access = caller(request)
    rows = access.narrowed(Submission.objects.select_related("owner"))
    rows = filters.narrow(rows, access=access)
    return newest_first(request, page, rows, SubmissionMade.of, of="submissions", filters=filters)


@router.get(
    "/{int:submission_id}", auth=READS, response=SubmissionDetails, operation_id="get_submission"
)
def get_submission(request: HttpRequest, response: HttpResponse, submission_id: int) -> Any:
    """Return one submission with its progress. Its ETag changes with the progress and the waves."""
    submission = find_submission(request, submission_id)
    progress = submission.progress
    rollout = getattr(submission, "rollout", None)
    changed = None if rollout is None else rollout.changed_at
    etag = etag_of(submission.pk, sorted(progress.counts.items()), progress.is_done, changed)
    return unchanged(request, response, etag) or SubmissionDetails.of_progress(
        submission, progress, rollout
    )


@router.get(
    "/{int:submission_id}/forecast",
    auth=READS,
    response=RestForecast,
    operation_id="get_submission_forecast",
)
def get_submission_forecast(request: HttpRequest, submission_id: int) -> RestForecast:
    """Estimate when the waiting runs of a submission start and end."""
    submission = find_submission(request, submission_id)
    # It counts what others' runs need of the slots, and names no other owner.
    with barrier.lifted():
        found = forecast_rest(submission)
    return RestForecast(forecast=RunsForecast.of(found) if found is not None else None)


def find_submission(request: HttpRequest, submission_id: int) -> Submission:
    """Return a submission that the caller sees, with its owner and waves, or raise DoesNotExist."""
    found: Submission = caller(request).narrowed(SUBMISSIONS.rows()).get(pk=submission_id)
    return found
