"""Submit many runs of one task in one request."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import ConfigDict, Field, StrictInt

from jobs.actions.owning import owner_named
from jobs.actions.texts import Name, TaskName
from jobs.api.kit.actions import IdempotencyKey
from jobs.api.kit.callers import caller
from jobs.api.kit.problems import Problem
from jobs.api.runs.submitting import SUBMITS, SubmitOptions, refuse_unoffered
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import SubmissionMade, SubmissionStored
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.models import Scope
from jobs.owners.caps import refuse_more_runs
from jobs.rollouts.waves import LONGEST, Waves
from jobs.runs.submission import submit_many

SECONDS_LIMIT: Final = int(LONGEST.total_seconds())


class WavesGiven(Schema):
    """The stages of a submission."""

    model_config = ConfigDict(extra="forbid")

    sizes: list[StrictInt | Name] = Field(
        min_length=1, description='Counts, or parts of all runs, as [1, "10%", "100%"].'
    )
    stop_at: StrictInt | Name | None = Field(
        None,
        description="Nothing more starts if more runs of a wave fail: a count, or a part of its"
        ' ended runs, as "5%".',
    )
    between: StrictInt | Literal["approval"] | None = Field(
        None,
        description='Seconds between two waves, or "approval" by somebody else; null: none.',
    )
    spread: Name = Field("", description="A label of targets: one run of each value comes first.")

    @property
    def checked(self) -> Waves:
        """The waves; raises OptionError."""
        between: Any = self.between
        if isinstance(between, int):
            # One more than the limit is refused as what is far above it.
            between = timedelta(seconds=max(0, min(between, SECONDS_LIMIT + 1)))
        return Waves(
            sizes=self.sizes,
            stop_at=self.stop_at,
            between=between,
            spread=self.spread,
        )


class RunsToSubmit(SubmitOptions):
    """Many runs of one task: all are stored, or none."""

    task: TaskName
    arguments: list[dict[str, Any]] = Field(min_length=1, description="Those of each run.")
    label: Name = Field("", description="For people.")
    waves: WavesGiven | None = Field(None, description="Stages, in which the runs go out.")


@router.post("", auth=SUBMITS, response={202: SubmissionStored}, operation_id="submit_many_runs")
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
    owner = owner_named(access, body.owner, Scope.SUBMIT)
    refuse_unoffered(body.task)
    refuse_more_runs(owner.pk, adding=len(body.arguments))
    with barrier.lifted():
        made = submit_many(
            body.task,
            body.arguments,
            owner=owner,
            label=body.label,
            idempotency_key=idempotency_key,
            waves=body.waves.checked if body.waves else None,
            actor=access.actor,
            **body.options,
        )
        response["Location"] = f"{request.path}/{made.id}"
        return SubmissionStored.of_stored(made)


def refuse_more_than_a_batch(field: str, count: int) -> None:
    """Raise Problem for more runs than one request may name."""
    most: int = setting("API_MAX_BATCH")
    if count > most:
        detail = f"One request submits {most:,} runs at most."
        raise Problem(413, "batch_too_large", detail, field=field, limit=most)
