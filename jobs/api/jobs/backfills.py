"""Backfills of a job: list, get with progress, cancel. `acting` makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from jobs.api.jobs.finding import find_job
from jobs.api.jobs.router import router
from jobs.api.jobs.schemas import BackfillFacts
from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Cursor, Page, PageOf
from jobs.api.kit.problems import first_of
from jobs.api.kit.reasons import ReasonBody
from jobs.api.submissions.acting import SubmissionCancelled
from jobs.api.submissions.schemas import RunProgress
from jobs.core import barrier
from jobs.models import Backfill, BackfillState, Job, Scope
from jobs.models.submission import Progress

READS = needs(Scope.READ, "jobs.view_job")
CANCELS = needs(Scope.OPERATE, "jobs.cancel_submission")


class BackfillSummary(BackfillFacts):
    """A backfill in a list."""

    id: int
    submission: int = Field(description="The submission that has its runs.")
    state: BackfillState = Field(description="Whether runs are still being submitted.")
    created_at: datetime
    done_at: datetime | None = Field(
        description="When its last run was submitted, or it was cancelled; null: not yet."
    )

    @classmethod
    def facts(cls, backfill: Backfill) -> dict[str, Any]:
        """Return the fields of a backfill."""
        return {
            **super().facts(backfill),
            "id": backfill.pk,
            "submission": backfill.submission_id,
            "state": backfill.state,
            "created_at": backfill.created_at,
            "done_at": backfill.done_at,
        }

    @classmethod
    def of(cls, backfill: Backfill) -> BackfillSummary:
        return cls(**cls.facts(backfill))


class BackfillDetails(BackfillSummary):
    """One backfill, with the progress of the runs that are submitted so far."""

    progress: RunProgress

    @classmethod
    def of_progress(cls, backfill: Backfill, progress: Progress) -> BackfillDetails:
        return cls(**cls.facts(backfill), progress=RunProgress.of(progress))


@router.get(
    "/{int:job_id}/backfills",
    auth=READS,
    response=PageOf[BackfillSummary],
    operation_id="list_backfills",
)
def list_backfills(request: HttpRequest, job_id: int, page: Page) -> PageOf[BackfillSummary]:
    """Return the backfills of a job, newest first."""
    access = caller(request)
    job = find_job(access, job_id)
    cursor = Cursor.read(page, of="backfills", caller=access.actor, filters=job.pk)
    found, following = cursor.newest_first(_visible(request, job))
    return PageOf[BackfillSummary](items=[BackfillSummary.of(one) for one in found], next=following)


@router.get(
    "/{int:job_id}/backfills/{int:backfill_id}",
    auth=READS,
    response=BackfillDetails,
    operation_id="get_backfill",
)
def get_backfill(
    request: HttpRequest, response: HttpResponse, job_id: int, backfill_id: int
) -> Any:
    """Return one backfill with its progress. Its ETag changes with the progress."""
    found = _find(request, find_job(caller(request), job_id), backfill_id)
    progress = found.submission.progress
    etag = etag_of("backfill", found.pk, found.made, found.done_at, sorted(progress.counts.items()))
    if not_modified := unchanged(request, response, etag):
        return not_modified
    return BackfillDetails.of_progress(found, progress)


@router.post(
    "/{int:job_id}/backfills/{int:backfill_id}/cancel",
    auth=CANCELS,
    response=SubmissionCancelled,
    operation_id="cancel_backfill",
)
def cancel_backfill(
    request: HttpRequest, job_id: int, backfill_id: int, body: ReasonBody
) -> SubmissionCancelled:
    """Make no further run of a backfill, and cancel those that have not ended.

    Repeating it changes nothing. The same as to cancel its submission.
    """
    job = find_job(caller(request), job_id)
    found = _find(request, job, backfill_id)
    refuse_other_scope(request, Scope.OPERATE, job.owner_id)
    with barrier.lifted():
        moved = found.submission.cancel(actor=caller(request).actor, reason=body.reason)
        progress = RunProgress.of(found.submission.progress)
    return SubmissionCancelled(progress=progress, **moved._asdict())


def _visible(request: HttpRequest, job: Job) -> Any:
    return caller(request).narrowed(Backfill.objects.filter(job=job), path="job__owner")


def _find(request: HttpRequest, job: Job, backfill_id: int) -> Backfill:
    """Return a backfill of a job, with its submission; raise Problem if there is none."""
    rows = _visible(request, job).select_related("submission")
    found: Backfill = first_of(rows.filter(pk=backfill_id))
    return found
