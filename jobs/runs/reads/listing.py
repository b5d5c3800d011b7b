"""Lists of runs, newest first, by filters that indexes answer also among millions of rows.

A filter without an index (task, error) is applied to the newest runs that the other filters find;
a page looks at SCANNED of them at most, and may be short, with more to follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from jobs.core import barrier
from jobs.core.ids import first_id_of
from jobs.core.states import State
from jobs.models import Job, Owner, Target
from jobs.models.access import Access
from jobs.models.run import RunQuerySet

SCANNED: Final = 20_000
CHUNK: Final = 2_000
NAMED: Final = 100
"""Most rows of other tables that one name may stand for, such as a job's key of many owners."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """The filters of a list of runs; None and empty mean all."""

    states: Sequence[State] = ()
    owner: str | None = None
    job: str | None = None
    task: str | None = None
    target: str | None = None
    submission: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    after: datetime | None = None
    """Submitted, or for runs of jobs due, at this time or later."""
    before: datetime | None = None


class Found(NamedTuple):
    """The ids of one page."""

    ids: list[UUID]
    last: UUID | None
    """The id after which the next page begins; None: there is none."""


def narrow(runs: RunQuerySet, wanted: RunFilter, *, access: Access) -> RunQuerySet:
    """Narrow runs by a filter; the name of another owner's row finds nothing."""
    if wanted.owner is not None:
        owners = access.narrowed(Owner.objects.filter(slug=wanted.owner), path="pk")
        runs = runs.filter(owner_id__in=_ids(owners))
    if wanted.job is not None:
        runs = runs.filter(job_id__in=_ids(access.narrowed(Job.objects.filter(key=wanted.job))))
    if wanted.target is not None:
        targets = access.narrowed(Target.objects.filter(name=wanted.target))
        runs = runs.filter(target_id__in=_ids(targets))
    if wanted.submission is not None:
        runs = runs.filter(submission_id=wanted.submission)
    if wanted.states:
        runs = runs.filter(state__in=sorted(set(wanted.states)))
    if wanted.labels:
        runs = runs.labelled(**wanted.labels)
    if wanted.after is not None:
        runs = runs.filter(id__gte=_first_id(wanted.after))
    if wanted.before is not None:
        runs = runs.filter(id__lt=_first_id(wanted.before))
    return runs.filter(_unindexed(wanted))


def newest(
    runs: RunQuerySet, wanted: RunFilter, *, access: Access, after: UUID | None, limit: int
) -> Found:
    """Return the ids of the next page of a filter."""
    indexed = narrow(runs, _indexed_part(wanted), access=access)
    # PostgreSQL would not use the index of labels behind the barrier. These rows are narrowed
    # already, and the page's rows are read behind it.
    with barrier.lifted():
        if wanted.task is None and wanted.error is None:
            ids = _first(indexed, wanted, after=after, count=limit + 1)
            return Found(ids[:limit], ids[limit - 1] if len(ids) > limit else None)
        return _scan(indexed, wanted, after=after, limit=limit)


def _first(runs: RunQuerySet, wanted: RunFilter, *, after: UUID | None, count: int) -> list[UUID]:
    """Return the ids of the newest runs: for each state those that its index has first."""
    if len(wanted.states) < 2 or wanted.submission is not None:
        return list(_ordered(runs, wanted, after)[:count])
    # With several states at once, PostgreSQL would read all runs of an owner, in their order.
    found = [
        run_id
        for state in set(wanted.states)
        for run_id in _ordered(runs.filter(state=state), wanted, after)[:count]
    ]
    return sorted(found, reverse=True)[:count]


def _ordered(runs: RunQuerySet, wanted: RunFilter, after: UUID | None) -> Any:
    rows = _next(runs, after)
    if wanted.submission is not None:
        # The same order, but no index has it: the few runs of the submission are read, and sorted.
        # PostgreSQL would read all runs of its owner to find the first 50 in their order.
        rows = rows.order_by(Cast("id", TextField()).desc())
    return rows.values_list("id", flat=True)


def _scan(runs: RunQuerySet, wanted: RunFilter, *, after: UUID | None, limit: int) -> Found:
    ids: list[UUID] = []
    last = after
    for _ in range(SCANNED // CHUNK):
        rows = list(_next(runs, last).values_list("id", "task", "error_type")[:CHUNK])
        for run_id, task, error in rows:
            if wanted.task in (None, task) and wanted.error in (None, error):
                ids.append(run_id)
                if len(ids) == limit:
                    return Found(ids, run_id)
            last = run_id
        if len(rows) < CHUNK:
            return Found(ids, None)
    return Found(ids, last)


def _first_id(moment: datetime) -> UUID:
    # No id is of a time before 1970.
    return first_id_of(max(moment, datetime(1970, 1, 1, tzinfo=UTC)))


def _next(runs: RunQuerySet, after: UUID | None) -> RunQuerySet:
    rows = runs if after is None else runs.filter(id__lt=after)
    return rows.order_by("-id")


def _indexed_part(wanted: RunFilter) -> RunFilter:
    return replace(wanted, task=None, error=None)


def _unindexed(wanted: RunFilter) -> Q:
    condition = Q()
    if wanted.task is not None:
        condition &= Q(task=wanted.task)
    if wanted.error is not None:
        condition &= Q(error_type=wanted.error)
    return condition


def _ids(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True)[:NAMED])
