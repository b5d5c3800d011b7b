"""Submit: one run. `jobs/api/submissions` submits many."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from jobs.actions.owning import owner_named
from jobs.actions.texts import Moment, Name, Slug, TaskName, Text
from jobs.api.kit.actions import IdempotencyKey
from jobs.api.kit.answers import sent
from jobs.api.kit.callers import caller, needs
from jobs.api.runs.router import router
from jobs.api.runs.schemas import RunDetails
from jobs.catalog.policies import MONTH_SECONDS
from jobs.catalog.registry import is_offered, nearest_offered
from jobs.core import barrier
from jobs.core.errors import UnknownTask
from jobs.core.inputs import LABELS_LIMIT
from jobs.models import Scope
from jobs.owners.caps import refuse_more_runs
from jobs.runs.options import FARTHEST
from jobs.runs.submission import submit

SUBMITS = needs(Scope.SUBMIT, "jobs.add_submission")

Seconds = Annotated[float, Field(ge=0.1, le=MONTH_SECONDS)]


class SubmitOptions(BaseModel):
    """Options of runs; by default those of the task."""

    model_config = ConfigDict(extra="forbid")

    owner: Slug | None = Field(None, description="Needed by callers with several owners.")
    queue: Annotated[Text, Field(max_length=100)] = ""
    priority: int | None = Field(None, ge=0, le=9, description="Higher first.")
    countdown: float | None = Field(
        None, ge=0, le=FARTHEST.total_seconds(), description="Seconds until the start; not with eta"
    )
    eta: Moment | None = Field(None, description="The earliest start; not with countdown.")
    deadline_seconds: Seconds | None = Field(None, description="Start within, else expire.")
    labels: dict[Name, Name] = Field({}, max_length=LABELS_LIMIT)
    target: Name = ""
    lock: Name = Field("", description="Runs of the owner with the same lock do not overlap.")
    window: str = Field("", pattern="^(required)?$", description="`required`: only in a window.")
    max_attempts: int | None = Field(None, ge=1, le=100)
    backoff_seconds: float | None = Field(None, ge=0, le=MONTH_SECONDS)
    backoff_cap_seconds: float | None = Field(None, ge=0, le=MONTH_SECONDS)
    soft_time_limit_seconds: Seconds | None = None
    time_limit_seconds: Seconds | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "OFF"] | None = Field(
        None, description="Of the lines that are kept; `OFF`: none."
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options for `submit`."""
        return self.model_dump(
            include=set(SubmitOptions.model_fields) - {"owner"}, exclude_none=True
        )


class RunToSubmit(SubmitOptions):
    """One run of a task."""

    task: TaskName
    arguments: dict[str, Any] = Field({}, description="The task's arguments, by name.")


@router.post("", auth=SUBMITS, response={202: RunDetails}, operation_id="submit_run")
def submit_run(
    request: HttpRequest,
    response: HttpResponse,
    body: RunToSubmit,
    idempotency_key: IdempotencyKey = None,
) -> HttpResponse:
    """Store one run, which starts as soon as a worker is free for its owner."""
    access = caller(request)
    owner = owner_named(access, body.owner, Scope.SUBMIT)
    refuse_unoffered(body.task)
    refuse_more_runs(owner.pk, adding=1)
    with barrier.lifted():
        run = submit(
            body.task,
            owner=owner,
            arguments=body.arguments,
            idempotency_key=idempotency_key,
            **body.options,
        )
        response["Location"] = f"{request.path}/{run.id}"
        details = RunDetails.of_run(run, access)
        return sent(details, response, status=202)


def refuse_unoffered(task: str) -> None:
    """Raise UnknownTask unless the task is on offer: other registered ones are for code only."""
    if not is_offered(task):
        raise UnknownTask(task, nearest_offered(task))
