"""Backfills: list, get with progress, cancel. `jobs/acting` makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from jobs.actions import Done, find
from jobs.actions.backfills import BACKFILLS
from jobs.api.jobs.finding import find_job
from jobs.api.jobs.router import router as jobs
from jobs.api.jobs.schemas import BackfillFacts
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.etags import etag_of, unchanged
from jobs.api.kit.pages import Page, PageOf, newest_first
from jobs.api.submissions.acting import SubmissionCancelled
from jobs.api.submissions.schemas import RunProgress
from jobs.models import Backfill, BackfillState, Scope

router = Router(tags=["backfills"])
READS = needs(Scope.READ, "jobs.view_job")


class BackfillSummary(BackfillFacts):
    """A backfill in a list."""

    id: int
    submission: int = Field(description="The submission that has its runs.")
    state: BackfillState = Field(description="Whether runs are still being submitted.")
    created_at: datetime
    done_at: datetime | None = Field(
        description="When its last run was submitted, or it was cancelled; null: not yet."
    )


class BackfillDetails(BackfillSummary):
    """One backfill, with the progress of the runs that are submitted so far."""

    progress: RunProgress


@jobs.get(
    "/{int:job_id}/backfills",
    auth=READS,
    response=PageOf[BackfillSummary],
    operation_id="list_backfills",
)
def list_backfills(request: HttpRequest, job_id: int, page: Page) -> PageOf[BackfillSummary]:
    """Return the backfills of a job, newest first."""
    rows = Backfill.objects.filter(job=find_job(caller(request), job_id))
    return newest_first(request, page, rows, BackfillSummary.of, of="backfills", filters=job_id)


@router.get("/{int:backfill_id}", auth=READS, response=BackfillDetails, operation_id="get_backfill")
def get_backfill(request: HttpRequest, response: HttpResponse, backfill_id: int) -> Any:
    """Return one backfill with its progress. Its ETag changes with the progress."""
    found = find(BACKFILLS, backfill_id, by=caller(request))
    progress = found.submission.progress
    etag = etag_of("backfill", found.pk, found.made, found.done_at, sorted(progress.counts.items()))
    return unchanged(request, response, etag) or BackfillDetails.of(
        found, progress=RunProgress.of(progress)
    )


def _cancelled(_request: HttpRequest, _response: HttpResponse, done: Done) -> SubmissionCancelled:
    return SubmissionCancelled.of(done.row.submission, done)


serve(
    router,
    BACKFILLS,
    "{int:backfill_id}",
    Answer(schema=SubmissionCancelled, of=_cancelled),
)
