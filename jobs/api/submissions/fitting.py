"""Will it fit: how runs would go, asked before they are submitted. Nothing is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from django.http import HttpRequest
from pydantic import Field

from jobs.actions.owning import owner_named
from jobs.actions.texts import Moment, Name, TaskName
from jobs.api.kit.callers import caller, needs
from jobs.api.runs.submitting import SubmitOptions, refuse_unoffered
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import RunsForecast
from jobs.api.submissions.submitting import WavesGiven, refuse_more_than_a_batch
from jobs.core import barrier
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.forecast.will_it_fit import will_it_fit
from jobs.models import Owner, Scope, TargetGroup

ASKS = needs(Scope.SUBMIT, "jobs.add_submission")
FARTHEST = timedelta(days=366)
SECONDS_LIMIT = 30 * 86_400


class RunsToForecast(SubmitOptions):
    """Runs of one task, one for each target."""

    task: TaskName
    targets: list[Annotated[Name, Field(min_length=1)]] | None = Field(
        None, min_length=1, description="Names of targets; not with group."
    )
    group: Name | None = Field(None, description="The name of a target group.")
    arguments: dict[str, Any] | None = Field(None, description="Checked, if they are given.")
    expected_seconds: float | None = Field(
        None, gt=0, le=SECONDS_LIMIT, description="The run time, if earlier runs do not show it."
    )
    waves: WavesGiven | None = Field(None, description="Stages, in which the runs go out.")
    at: Moment | None = Field(None, description="When they would be submitted: up to a year ahead.")


@router.post("/fit", auth=ASKS, response=RunsForecast, operation_id="forecast_runs")
def forecast_runs(request: HttpRequest, body: RunsToForecast) -> RunsForecast:
    """Estimate when such runs would start and end, and which windows are too short for them."""
    owner = owner_named(caller(request), body.owner, Scope.SUBMIT)
    refuse_unoffered(body.task)
    if body.targets is not None:
        refuse_more_than_a_batch("targets", len(body.targets))
    with barrier.lifted():
        owner.refresh_from_db()
        found = will_it_fit(
            body.task,
            owner=owner,
            targets=_targets(body, owner),
            arguments=body.arguments,
            expected_seconds=body.expected_seconds,
            at=_at(body),
            waves=body.waves.checked if body.waves else None,
            **{name: value for name, value in body.options.items() if name != "target"},
        )
    return RunsForecast.of(found)


def _targets(body: RunsToForecast, owner: Owner) -> list[str] | TargetGroup:
    if (body.targets is None) == (body.group is None):
        raise OptionError("targets", "or a group is needed, and not both")
    if body.targets is not None:
        return list(body.targets)
    group = TargetGroup.objects.filter(owner=owner, name=body.group).first()
    if group is None:
        raise OptionError("group", f"{body.group!r} is none of {owner.slug}'s")
    return group


def _at(body: RunsToForecast) -> Any:
    if body.at is not None and not abs(body.at - now()) <= FARTHEST:
        raise OptionError("at", f"is at most {FARTHEST.days} days from now")
    return body.at
