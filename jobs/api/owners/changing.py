"""Owners: add, change, and the actions on them.

Weights and limits decide about the shares of other owners too, so only the installation's admins
set them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import ConfigDict, Field

from jobs.actions.owners import OWNERS
from jobs.actions.texts import Reason, Slug, Text
from jobs.api.kit.actions import Answer, serve
from jobs.api.kit.callers import caller, needs, refuse_other_scope, refuse_without
from jobs.api.kit.etags import IF_MATCH, refuse_stale
from jobs.api.kit.problems import Problem
from jobs.api.owners.reading import find_owner
from jobs.api.owners.router import router
from jobs.api.owners.schemas import OwnerDetails, etag_of_owner
from jobs.core import barrier
from jobs.models import Owner, Scope
from jobs.models.fields import (
    COUNT_MOST,
    DAYS_MOST,
    OBJECTIVE_PERCENT_LEAST,
    OBJECTIVE_PERCENT_MOST,
    OBJECTIVE_SECONDS_MOST,
    WEIGHT_MOST,
)
from jobs.owners.limits import LIMITS
from jobs.owners.registry import add_owner, change_owner

ADDS = needs(Scope.ADMIN, "jobs.add_owner")
CHANGES = needs(Scope.ADMIN, "jobs.change_owner")
AS_INSTALLED: Final = "Days that its runs stay; null: as the installation has it."
NEVER_NULL: Final = ("weight", "name", "zone", "wait_objective_percent")
OBJECTIVE: Final = (
    "The wait in seconds, from when a run may start, within which `wait_objective_percent` of the "
    "starts are to happen; null: no objective."
)

Weight = Annotated[int, Field(ge=1, le=WEIGHT_MOST, strict=True)]
Limit = Annotated[int, Field(ge=1, le=COUNT_MOST, strict=True)]
ObjectiveSeconds = Annotated[int, Field(ge=1, le=OBJECTIVE_SECONDS_MOST, strict=True)]
ObjectivePercent = Annotated[
    float, Field(ge=OBJECTIVE_PERCENT_LEAST, le=OBJECTIVE_PERCENT_MOST, allow_inf_nan=False)
]
Days = Annotated[int, Field(ge=1, le=DAYS_MOST, strict=True)]
OwnerName = Annotated[Text, Field(max_length=200)]
Zone = Annotated[Text, Field(max_length=64, description="An IANA time zone.")]


class OwnerToAdd(Schema):
    """An owner to be added."""

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


class OwnerChange(Schema):
    """The facts of an owner to be changed; those that are absent stay.

    Weight, limits and days are changed by admins of the installation only.
    """

    model_config = ConfigDict(extra="forbid")

    name: OwnerName | None = None
    zone: Zone | None = None
    weight: Weight | None = None
    max_running: Limit | None = Field(None, description="Null: no limit.")
    rate_limit_per_minute: Limit | None = Field(None, description="Null: no limit.")
    run_days: Days | None = Field(None, description=AS_INSTALLED)
    failed_run_days: Days | None = Field(None, description=AS_INSTALLED)
    wait_objective_seconds: ObjectiveSeconds | None = Field(None, description=OBJECTIVE)
    wait_objective_percent: ObjectivePercent | None = None
    reason: Reason = ""


@router.post("", auth=ADDS, response={201: OwnerDetails}, operation_id="add_owner")
def add(request: HttpRequest, response: HttpResponse, body: OwnerToAdd) -> OwnerDetails:
    """Add an owner. Only for admins of the installation."""
    access = caller(request)
    refuse_without(access, Scope.ADMIN, None)
    with barrier.lifted():
        owner = add_owner(**body.model_dump(), actor=access.actor)
    response["Location"] = f"{request.path}/{owner.slug}"
    response["ETag"] = etag_of_owner(owner)
    return OwnerDetails.of(owner)


@router.patch(
    "/{slug}",
    auth=CHANGES,
    response=OwnerDetails,
    operation_id="change_owner",
    openapi_extra=IF_MATCH,
)
def change(
    request: HttpRequest, response: HttpResponse, slug: str, body: OwnerChange
) -> OwnerDetails:
    """Change an owner. `If-Match` with its ETag is required."""
    found = find_owner(access := caller(request), slug)
    refuse_other_scope(request, Scope.ADMIN, found.pk)
    facts = body.model_dump(exclude={"reason"}, exclude_unset=True)
    _refuse_null(facts)
    if set(facts) & set(LIMITS):
        refuse_without(access, Scope.ADMIN, None)
    with _locked(request, found) as owner:
        change_owner(owner, actor=access.actor, reason=body.reason, **facts)
    return _shown(response, owner)


@contextmanager
def _locked(request: HttpRequest, found: Owner) -> Iterator[Owner]:
    """Yield an owner, locked with the barrier lifted, if it is the version that If-Match names."""
    with barrier.lifted(), transaction.atomic():
        owner = Owner.objects.select_for_update().get(pk=found.pk)
        refuse_stale(request, etag_of_owner(owner), is_required=True)
        yield owner


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


def _refuse_null(facts: dict[str, Any]) -> None:
    for name in NEVER_NULL:
        if name in facts and facts[name] is None:
            raise Problem(422, "invalid", f"{name}: may not be null", field=name)
