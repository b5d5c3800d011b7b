"""Owners: create, and the actions on them.

Weights and limits decide about the shares of other owners too, so only the installation's admins
set them.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import ConfigDict, Field

from jobs.actions.owners import (
    AS_INSTALLED,
    OBJECTIVE,
    OWNERS,
    Days,
    Limit,
    ObjectivePercent,
    ObjectiveSeconds,
    OwnerName,
    Weight,
    Zone,
)
from jobs.actions.texts import Reason, Slug
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller, needs, refuse_without
from jobs.api.owners.router import router
from jobs.api.owners.schemas import OwnerDetails, etag_of_owner
from jobs.core import barrier
from jobs.models import Owner, Scope
from jobs.owners.registry import add_owner

ADDS = needs(Scope.ADMIN, "jobs.add_owner")


class OwnerToCreate(Schema):
    """An owner to be created."""

    model_config = ConfigDict(extra="forbid")

    slug: Slug
    name: OwnerName = ""
    zone: Zone = "UTC"
    weight: Weight = 1
    max_running: Limit | None = Field(None, description="Null: no limit.")
    rate_limit_per_minute: Limit | None = Field(None, description="Null: no limit.")
    run_days: Days | None = Field(None, description=AS_INSTALLED)
    failed_run_days: Days | None = Field(None, description=AS_INSTALLED)
    wait_objective_seconds: ObjectiveSeconds | None = Field(None, description=OBJECTIVE)
    wait_objective_percent: ObjectivePercent = 95
    reason: Reason = ""


@router.post("", auth=ADDS, response={201: OwnerDetails}, operation_id="create_owner")
def add(request: HttpRequest, response: HttpResponse, body: OwnerToCreate) -> OwnerDetails:
    """Create an owner. Only for admins of the installation."""
    access = caller(request)
    refuse_without(access, Scope.ADMIN, None)
    with barrier.lifted():
        owner = add_owner(**body.model_dump(), actor=access.actor)
    response["Location"] = f"{request.path}/{owner.slug}"
    response["ETag"] = etag_of_owner(owner)
    return OwnerDetails.of(owner)


def _shown(response: HttpResponse, owner: Owner) -> OwnerDetails:
    response["ETag"] = etag_of_owner(owner)
    return OwnerDetails.of(owner)


serve(
    router,
    OWNERS,
    "{slug}",
    Answer(schema=OwnerDetails, of=lambda _request, response, done: _shown(response, done.row)),
    etag_of=lambda owner, _request: etag_of_owner(owner),
)
