"""The list of submissions, newest first, each with its progress."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from jobs.actions.filters.submissions import SubmissionFilter
from jobs.models import Submission
from jobs.pages.kit import lists
from jobs.pages.kit.visit import Visit, page
from jobs.pages.submissions.submit import may_submit
from jobs.runs.reads.counts import states_by


@page("submissions", permission="jobs.view_submission")
def submissions(visit: Visit) -> HttpResponse:
    """Show the submissions of a filter."""
    form = lists.FilterForm(visit, SubmissionFilter)
    rows: Any = form.narrow(visit.rows(Submission.objects.select_related("owner")))
    found = lists.newest_first(visit, rows, of="submissions")
    counts = states_by("submission", [row.pk for row in found.rows])
    lines = [(row, None if counts is None else counts.get(row.pk, {})) for row in found.rows]
    return visit.show(
        "jobs/pages/submissions/list.html",
        form=form,
        list=found,
        lines=lines,
        submit_url=visit.address("submit") if may_submit(visit.access) else None,
        admin_url=visit.admin_address("submission_changelist"),
    )
