"""Override: a run starts outside its windows, with a reason that is audited."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from ninja import Schema
from pydantic import ConfigDict, Field

from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.reasons import NeededReason
from jobs.api.runs.finding import find_run
from jobs.api.runs.router import router
from jobs.core import barrier
from jobs.models import Scope
from jobs.runs.override import held_by, override_windows

OVERRIDES = needs(Scope.OPERATE, "jobs.override_window")


class Override(Schema):
    """The reason of an override."""

    model_config = ConfigDict(extra="forbid")

    reason: NeededReason


class Overridden(Schema):
    """The effect of an override."""

    overridden: int = Field(description="Waiting runs that had to obey their windows before.")
    held_by: list[str] = Field(
        description="Shared calendars that still hold some of these runs: only callers that may "
        "operate the whole installation override them."
    )


@router.post(
    "/{uuid:run_id}/override", auth=OVERRIDES, response=Overridden, operation_id="override_run"
)
def override_run(request: HttpRequest, run_id: UUID, body: Override) -> Overridden:
    """Let a waiting run start outside its windows. Repeating it changes nothing."""
    run = find_run(caller(request), run_id)
    refuse_other_scope(request, Scope.OPERATE, run.owner_id)
    with barrier.lifted():
        count = override_windows([run.id], actor=caller(request).actor, reason=body.reason)
        return Overridden(overridden=count, held_by=held_by([run.id]))
