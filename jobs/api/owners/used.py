"""The usage of an owner in a span."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.http import HttpRequest
from ninja import Query, Schema
from pydantic import Field

from jobs.actions.texts import Moment
from jobs.api.kit.answers import facts_of
from jobs.api.kit.callers import caller
from jobs.api.owners.reading import READS, find_owner
from jobs.api.owners.router import router
from jobs.core import barrier
from jobs.core.sql import now
from jobs.core.states import State
from jobs.system.rollups.usage import usage

DAY: Final = timedelta(days=1)


class UsageQuery(Schema):
    """The span: at most 31 days, in full minutes.

    A run that has ended is counted in the span in which its end was recorded. An open run is
    counted in the span in which it was submitted, or due.
    """

    after: Moment | None = Field(None, description="Default: a day before `before`.")
    before: Moment | None = Field(None, description="Default: now.")


class OwnerUsage(Schema):
    """The usage of an owner in a span."""

    after: datetime
    before: datetime
    runs: dict[State, int] | None = Field(
        description="How many ended in the span, by how they ended; and how many that were"
        " submitted, or due, in it are open, by their state now. null: too many to count."
    )
    worker_seconds: float | None = Field(
        description="How long workers ran attempts that ended in the span; null: too many to count."
    )
    received: float | None = Field(
        description="`worker_seconds` as a part of that of all owners in the span, 0 to 1;"
        " null: there is none, or too much to count."
    )
    entitled: float | None = Field(
        description="Now: the owner's weight as a part of the weights of all owners that have work,"
        " 0 to 1; from the fair queues, null if Redis is away. Compare it with `received` only for"
        " a span in which the owner always had work waiting."
    )


@router.get("/{slug}/usage", auth=READS, response=OwnerUsage, operation_id="get_owner_usage")
def get_owner_usage(request: HttpRequest, slug: str, query: Query[UsageQuery]) -> OwnerUsage:
    """Return what an owner used in a span, and its share of the workers.

    It is read from statistics of each minute. Spans can be added up: limits within a minute are
    rounded down. Only the last minute or two are read from rows, and left out if they are too many.
    """
    owner = find_owner(caller(request), slug)
    with barrier.lifted():
        end = query.before or now()
        start = query.after or _day_before(end)
        # Shares are parts of all owners' worker time and weights; they name no other owner.
        used = usage(owner, start=start, end=end)
    return OwnerUsage(**facts_of(OwnerUsage, used, after=start, before=end))


def _day_before(moment: datetime) -> datetime:
    try:
        return moment - DAY
    except OverflowError:
        return moment
