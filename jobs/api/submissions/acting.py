"""Submissions: the actions on all of their runs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import Field

from jobs.actions import Done
from jobs.actions.rollouts import ROLLOUT_ACTIONS
from jobs.actions.submissions import SUBMISSIONS
from jobs.api.kit.actions import Answer, serve
from jobs.api.runs.schemas import Overridden
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import RolloutDetails, RunProgress
from jobs.core import barrier
from jobs.models import Submission
from jobs.models.verbs import Cancelled
from jobs.runs.override import held_by_of


class SubmissionCancelled(Schema):
    """The effect of a cancel."""

    cancelled: int = Field(description="Waiting runs that ended.")
    stopping: int = Field(description="Active runs that a worker is asked to stop.")
    progress: RunProgress

    @classmethod
    def of(cls, submission: Submission, done: Done) -> SubmissionCancelled:
        """Return the effect of an action that cancels a submission."""
        moved = done.value or Cancelled()
        return cls(progress=_progress(submission), **moved._asdict())


class SubmissionRetried(Schema):
    """The effect of a retry of failed runs."""

    retried: int = Field(description="Failed runs that are queued again.")
    left: int = Field(description="Not reached in time: repeat the request.")
    progress: RunProgress


def _cancelled(_request: HttpRequest, _response: HttpResponse, done: Done) -> SubmissionCancelled:
    return SubmissionCancelled.of(done.row, done)


def _retried(_request: HttpRequest, _response: HttpResponse, done: Done) -> SubmissionRetried:
    moved, left = done.value or (0, 0)
    return SubmissionRetried(retried=moved, left=left, progress=_progress(done.row))


def _overridden(_request: HttpRequest, _response: HttpResponse, done: Done) -> Overridden:
    return Overridden.of(done, lambda: held_by_of(done.row))


def _progress(submission: Any) -> RunProgress:
    with barrier.lifted():
        return RunProgress.of(submission.progress)


def _of_rollout(_request: HttpRequest, _response: HttpResponse, done: Done) -> RolloutDetails:
    return RolloutDetails.of(done.value)


serve(
    router,
    SUBMISSIONS,
    "{int:submission_id}",
    Answer(schema=SubmissionCancelled, of=_cancelled),
    answers={
        "retry": Answer(schema=SubmissionRetried, of=_retried),
        "override": Answer(schema=Overridden, of=_overridden),
        **{one.name: Answer(schema=RolloutDetails, of=_of_rollout) for one in ROLLOUT_ACTIONS},
    },
)
