"""Counts and last results of runs for a page of rows: one query for all, bounded in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count

from jobs.core import sql
from jobs.core.counting import within
from jobs.core.states import State
from jobs.models import Run

MILLISECONDS: Final = 400
RESULTS: Final = 20

Counts = Mapping[Any, Mapping[State, int]]


def states_by(
    field: str, keys: Collection[Any], *, states: Collection[State] | None = None
) -> Counts | None:
    """Count runs by state for each key of a foreign key; None after MILLISECONDS."""
    runs = Run.objects.filter(**{f"{field}__in": list(keys)})
    if states is not None:
        runs = runs.filter(state__in=sorted(states))
    rows = runs.order_by().values_list(f"{field}_id", "state").annotate(count=Count("*"))
    found = within(MILLISECONDS, lambda: list(rows))
    if found is None:
        return None
    counts: dict[Any, dict[State, int]] = defaultdict(dict)
    for key, state, count in found:
        counts[key][State(state)] = count
    return counts


class Result(NamedTuple):
    """One of the last runs of a job. `seconds`: from start to end; None if it has not both."""

    id: UUID
    state: State
    seconds: float | None


def last_results(job_ids: Collection[int]) -> Mapping[int, list[Result]]:
    """Return each job's last runs, newest first."""
    rows = sql.run("runs/last_results", {"jobs": list(job_ids), "most": RESULTS})
    results: dict[int, list[Result]] = defaultdict(list)
    for row in rows:
        results[row["job_id"]].append(Result(row["id"], State(row["state"]), row["seconds"]))
    return results
