"""Owners in answers."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema
from pydantic import Field

from jobs.api.kit.answers import facts_of
from jobs.api.kit.etags import etag_of
from jobs.models import Owner


class OwnerDetails(Schema):
    """An owner, with its share and its limits."""

    slug: str
    name: str
    zone: str
    weight: int = Field(description="Its share of the workers, in proportion to the others'.")
    max_running: int | None = Field(description="Most runs at once; null: no limit.")
    rate_limit_per_minute: int | None = Field(description="Most starts; null: no limit.")
    run_days: int | None = Field(
        description="Days that ended runs stay; null: as the installation has it."
    )
    failed_run_days: int | None = Field(
        description="Days that failed runs stay; null: as the installation has it."
    )
    wait_objective_seconds: int | None = Field(
        description="The wait in seconds that the objective allows; null: no objective."
    )
    wait_objective_percent: float = Field(
        description="The part of the starts that are to happen within it, in percent."
    )
    is_paused: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_reason: str
    created_at: datetime

    @classmethod
    def of(cls, owner: Owner) -> OwnerDetails:
        return cls(**facts_of(cls, owner, is_paused=owner.is_paused()))


def etag_of_owner(owner: Owner) -> str:
    """Return the ETag of an owner."""
    return etag_of(OwnerDetails.of(owner).model_dump())
