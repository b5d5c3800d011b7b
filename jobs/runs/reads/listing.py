"""Lists of runs, newest first, by filters that indexes answer also among millions of rows.

A filter without an index is applied to the newest runs that the other filters find; a page looks at
SCANNED of them at most, and may be short, with more to follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast

from jobs.core import barrier
from jobs.core.states import State
from jobs.models.run import RunQuerySet

SCANNED: Final = 20_000
CHUNK: Final = 2_000
UNLISTED: Final = ("payload", "result", "checkpoint", "looks", "history", "policy", "options")
"""Columns that may be long, and that no list shows."""


class PageOfIds(NamedTuple):
    """The ids of one page."""

    ids: list[UUID]
    last: UUID | None
    """The id after which the next page begins; None: there is none."""


def newest(
    runs: RunQuerySet,
    *,
    states: Collection[State],
    is_sorted: bool,
    scanned: Mapping[str, Any],
    after: UUID | None,
    limit: int,
) -> PageOfIds:
    """Return the ids of the next page of runs, which are narrowed by all that indexes answer.

    `states` are those of the filter; `scanned` are columns without an index, with their values.
    `is_sorted`: the runs are few, such as those of a submission, and are read and sorted.
    """
    # PostgreSQL would not use the index of labels behind the barrier. These rows are narrowed
    # already, and the page's rows are read behind it.
    with barrier.lifted():
        if scanned:
            return _scan(runs, scanned, after=after, limit=limit)
        rows = _next(runs, after)
        if is_sorted:
            # The same order, but no index has it: PostgreSQL would read all runs of an owner to
            # find the first 50 in their order.
            found = list(_ids(rows.order_by(Cast("id", TextField()).desc()))[: limit + 1])
        elif len(states) < 2:
            found = list(_ids(rows)[: limit + 1])
        else:
            # With several states at once, PostgreSQL would read all runs of an owner, in their
            # order. For each state, its index has the newest first.
            each = [_ids(rows.filter(state=state))[: limit + 1] for state in states]
            found = sorted((one for ids in each for one in ids), reverse=True)[: limit + 1]
        return PageOfIds(found[:limit], found[limit - 1] if len(found) > limit else None)


def _scan(
    runs: RunQuerySet, scanned: Mapping[str, Any], *, after: UUID | None, limit: int
) -> PageOfIds:
    ids: list[UUID] = []
    last = after
    for _ in range(SCANNED // CHUNK):
        rows = list(_next(runs, last).values_list("id", *scanned)[:CHUNK])
        for last, *values in rows:
            if values == list(scanned.values()):
                ids.append(last)
                if len(ids) == limit:
                    return PageOfIds(ids, last)
        if len(rows) < CHUNK:
            return PageOfIds(ids, None)
    return PageOfIds(ids, last)


def _next(runs: RunQuerySet, after: UUID | None) -> RunQuerySet:
    rows = runs if after is None else runs.filter(id__lt=after)
    return rows.order_by("-id")


def _ids(rows: RunQuerySet) -> Any:
    return rows.values_list("id", flat=True)
