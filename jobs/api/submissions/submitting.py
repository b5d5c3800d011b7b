"""Submit many runs of one task in one request."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from jobs.actions.texts import Name, TaskName
from jobs.api.kit.actions import IdempotencyKey
from jobs.api.kit.callers import caller
from jobs.api.kit.owning import owner_of_request
from jobs.api.kit.problems import Problem
from jobs.api.runs.submitting import SUBMITS, SubmitOptions, refuse_unoffered
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import SubmissionMade
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.models import Scope
from jobs.owners.caps import refuse_more_runs
from jobs.runs.submission import submit_many


class RunsToSubmit(SubmitOptions):
    """Many runs of one task: all are stored, or none."""

    task: TaskName
    arguments: list[dict[str, Any]] = Field(min_length=1, description="Those of each run.")
    label: Name = Field("", description="For people.")


@router.post("", auth=SUBMITS, response={202: SubmissionMade}, operation_id="submit_many_runs")
def submit_many_runs(
    request: HttpRequest,
    response: HttpResponse,
    body: RunsToSubmit,
    idempotency_key: IdempotencyKey = None,
) -> SubmissionMade:
    """Store many runs at once: all, or none and every wrong element with its index.

    `target` and `lock` may name an argument, as `"{host}"`.
    """
    access = caller(request)
    refuse_more_than_a_batch("arguments", len(body.arguments))
    owner = owner_of_request(access, body.owner, Scope.SUBMIT)
    refuse_unoffered(body.task)
    refuse_more_runs(owner.pk, adding=len(body.arguments))
    with barrier.lifted():
        made = submit_many(
            body.task,
            body.arguments,
            owner=owner,
            label=body.label,
            idempotency_key=idempotency_key,
            **body.options,
        )
        response["Location"] = f"{request.path}/{made.id}"
        return SubmissionMade.of(made)


def refuse_more_than_a_batch(field: str, count: int) -> None:
    """Raise Problem for more runs than one request may name."""
    most: int = setting("API_MAX_BATCH")
    if count > most:
        detail = f"One request submits {most:,} runs at most."
        raise Problem(413, "batch_too_large", detail, field=field, limit=most)
