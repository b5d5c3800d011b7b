"""Dead letters: failed runs in groups. `POST /runs/retry` queues a group again."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from jobs.actions.filters.runs import FailureFilter
from jobs.api.kit.callers import caller, needs
from jobs.api.runs.reading import visible_runs
from jobs.models import Owner, Scope
from jobs.runs.reads.dead_letters import Group, group_failed

router = Router(tags=["dead letters"])
READS = needs(Scope.READ, "jobs.view_run")


class DeadLetterQuery(FailureFilter):
    """The filters of failed runs, and the size of the answer."""

    limit: int = Field(100, ge=1, le=1_000, description="Most groups of the answer.")


class DeadLetterGroup(Schema):
    """Failed runs of one owner with the same task and error."""

    owner: str
    task: str
    error: str = Field(description="The class of the error, in full.")
    count: int
    newest_run: UUID
    newest_message: str | None = Field(
        description="Null for callers that may not see arguments: error messages often repeat them."
    )
    newest_ended_at: datetime | None

    @classmethod
    def of(cls, group: Group, *, owner: str) -> DeadLetterGroup:
        return cls(
            owner=owner,
            task=group.task,
            error=group.error,
            count=group.count,
            newest_run=group.newest,
            newest_message=group.message,
            newest_ended_at=group.last_ended_at,
        )


class DeadLetters(Schema):
    """The groups, the largest first."""

    items: list[DeadLetterGroup]
    is_complete: bool = Field(
        description="False: only the newest 50,000 failed runs were grouped, or there are more"
        " groups than `limit`."
    )


@router.get("", auth=READS, response=DeadLetters, operation_id="list_dead_letters")
def list_dead_letters(request: HttpRequest, query: Query[DeadLetterQuery]) -> DeadLetters:
    """Return the failed runs in groups of one owner, task and error, with counts."""
    access = caller(request)
    runs = query.narrow(visible_runs(access), access=access)
    groups, is_complete = group_failed(runs, access=access, most=query.limit)
    owners = Owner.objects.filter(pk__in={group.owner_id for group in groups})
    slugs = dict(access.narrowed(owners, path="pk").values_list("pk", "slug"))
    return DeadLetters(
        items=[
            DeadLetterGroup.of(group, owner=slugs[group.owner_id])
            for group in groups
            if group.owner_id in slugs
        ],
        is_complete=is_complete,
    )
