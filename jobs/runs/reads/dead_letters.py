"""Dead letters: the failed runs, grouped by owner, task and error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.core.exceptions import EmptyResultSet

from jobs.core import prepared
from jobs.models.access import Access
from jobs.models.run import RunQuerySet
from jobs.runs.reads.errors import message_of

SCANNED: Final = 50_000
"""Failed runs that are grouped at most, but for one: the newest."""
_GROUPED: Final = """
SELECT owner_id, task, error_type AS error, count(*) AS count,
    max(id::text)::uuid AS newest, min(id::text)::uuid AS oldest
FROM ({read}) AS failed
GROUP BY owner_id, task, error_type
"""


@dataclass(slots=True)
class Group:
    """Failed runs of one owner with the same task and class of error."""

    owner_id: int
    task: str
    error: str
    newest: UUID
    """The run with the highest id."""
    oldest: UUID
    """That with the lowest one, of those that were read."""
    last_ended_at: datetime | None
    message: str | None
    """The error message of the newest run; None: the caller may not see it."""
    count: int = 0


class Groups(NamedTuple):
    """Groups, the largest first."""

    groups: Sequence[Group]
    is_complete: bool
    """False: there are more failed runs than were grouped."""


def group_failed(runs: RunQuerySet, *, access: Access, most: int) -> Groups:
    """Group the failed ones among some runs; return the `most` largest groups."""
    columns = ("owner_id", "task", "error_type", "id")
    rows = runs.failed().order_by("-id").values(*columns)[: SCANNED + 1]
    try:
        read, parameters = rows.query.sql_with_params()
    except EmptyResultSet:  # a filter that nothing can match, as of an unknown owner
        return Groups([], is_complete=True)
    found = [
        Group(**row, last_ended_at=None, message=None)
        for row in prepared.query(_GROUPED.format(read=read), parameters)
    ]
    is_all = sum(group.count for group in found) <= SCANNED
    largest = sorted(found, key=lambda one: (-one.count, one.task, one.error))
    _complete(runs, largest[:most], access)
    return Groups(largest[:most], is_all and len(largest) <= most)


@dataclass(slots=True)
class ErrorGroup:
    """Failed runs of all owners with the same task and class of error."""

    task: str
    error: str
    count: int
    owner_ids: set[int]
    newest: Group
    """The owner's group with the newest run."""
    oldest: UUID


def by_error(groups: Sequence[Group]) -> list[ErrorGroup]:
    """Put together the groups of several owners, the largest first."""
    found: dict[tuple[str, str], ErrorGroup] = {}
    for group in groups:
        key = (group.task, group.error)
        whole = found.setdefault(key, ErrorGroup(*key, 0, set(), group, group.oldest))
        whole.count += group.count
        whole.owner_ids.add(group.owner_id)
        whole.oldest = min(whole.oldest, group.oldest)
        whole.newest = max(whole.newest, group, key=lambda one: one.newest)
    return sorted(found.values(), key=lambda one: (-one.count, one.task, one.error))


def _complete(runs: RunQuerySet, groups: Sequence[Group], access: Access) -> None:
    newest = runs.filter(id__in=[group.newest for group in groups]).order_by()
    columns = ("owner_id", "job_id", "ended_at", "error_message", "error_data", "error_key")
    found = {run.pk: run for run in newest.only(*columns)}
    for group in groups:
        if run := found.get(group.newest):
            group.last_ended_at, group.message = run.ended_at, message_of(run, access)
