"""Submissions: cancelled, or started outside their windows."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Schema
from pydantic import Field

from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.reasons import ReasonBody
from jobs.api.runs.overriding import OVERRIDES, Overridden, Override
from jobs.api.submissions.reading import find_submission
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import RunProgress
from jobs.core import barrier
from jobs.models import Scope
from jobs.runs.override import held_by_of
from jobs.runs.override import override_submission as override

CANCELS = needs(Scope.OPERATE, "jobs.cancel_submission")


class SubmissionCancelled(Schema):
    """The effect of a cancel."""

    cancelled: int = Field(description="Waiting runs that ended.")
    stopping: int = Field(description="Active runs that a worker is asked to stop.")
    progress: RunProgress


@router.post(
    "/{int:submission_id}/cancel",
    auth=CANCELS,
    response=SubmissionCancelled,
    operation_id="cancel_submission",
)
def cancel_submission(
    request: HttpRequest, submission_id: int, body: ReasonBody
) -> SubmissionCancelled:
    """Cancel every run of a submission that has not ended. Repeating it changes nothing."""
    submission = find_submission(request, submission_id)
    refuse_other_scope(request, Scope.OPERATE, submission.owner_id)
    with barrier.lifted():
        moved = submission.cancel(actor=caller(request).actor, reason=body.reason)
        progress = RunProgress.of(submission.progress)
    return SubmissionCancelled(progress=progress, **moved._asdict())


@router.post(
    "/{int:submission_id}/override",
    auth=OVERRIDES,
    response=Overridden,
    operation_id="override_submission",
)
def override_submission(request: HttpRequest, submission_id: int, body: Override) -> Overridden:
    """Let all waiting runs of a submission start outside their windows, with a reason."""
    submission = find_submission(request, submission_id)
    refuse_other_scope(request, Scope.OPERATE, submission.owner_id)
    with barrier.lifted():
        count = override(submission, actor=caller(request).actor, reason=body.reason)
        return Overridden(overridden=count, held_by=held_by_of(submission))
