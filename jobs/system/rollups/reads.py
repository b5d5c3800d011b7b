"""What pages and metrics read of the last minutes and days, from rollups only.

`owner_ids` are the owners that the reader may see; None: all. `start` and `end` are full minutes,
`end` not included; `last_minutes` returns a span. An owner that was deleted still has its rollups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from jobs.core import barrier, sql
from jobs.core.states import ENDED, State
from jobs.models.rollup import OUTCOMES
from jobs.system.rollups.histogram import Percentiles, percentiles, percentiles_of

MINUTE: Final = timedelta(minutes=1)
LATE: Final = timedelta(minutes=2)
"""How long after its end a minute is counted at the latest, unless the statistics lag."""
MOST_FAILURES: Final = 100
"""Pairs of task and error that `failures` returns at most, those with most failed runs first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What ended in one minute. None: nothing has been measured."""

    at: datetime
    outcomes: Mapping[State, int]
    wait: Percentiles | None
    run: Percentiles | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerTotals:
    """What an owner's attempts and runs came to in a span."""

    owner_id: int
    runs: int
    """Runs that ended."""
    failed: int
    worker_seconds: float
    """Of attempts whose outcome was written in the span."""
    received: float | None
    """Its part of all owners' worker time in the span; None if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The failed attempts of one task with one error, in a span."""

    task: str
    error_type: str
    """Empty for runs that an operator failed before their start."""
    failed: int
    """Runs that ended as failed."""
    retried: int
    """Attempts after which the run was tried again."""
    owners: int
    last_minute: datetime


def last_minutes(count: int) -> tuple[datetime, datetime] | None:
    """Return the start and the end of the last minutes that were counted.

    None before the first, and while the statistics lag: what happened lately is not known then.
    """
    with barrier.lifted():
        rows = sql.query("SELECT counted_until, clock_timestamp() AS at FROM jobs_rollupposition")
    if not rows or lag(rows[0]["counted_until"], at=rows[0]["at"]) > LATE:
        return None
    until = rows[0]["counted_until"]
    return until - count * MINUTE, until


def counted_until() -> datetime | None:
    """Return the end of the last minute that was counted; None before the first."""
    with barrier.lifted():
        rows = sql.query("SELECT counted_until FROM jobs_rollupposition")
    return rows[0]["counted_until"] if rows else None


def lag(until: datetime, *, at: datetime) -> timedelta:
    """Return how long ago the first minute ended that is not counted; 0 if it has not ended."""
    return max(timedelta(), at - until - MINUTE)


def minutes(owner_ids: Collection[int] | None, *, start: datetime, end: datetime) -> list[Minute]:
    """Return each minute of a span, with the empty ones, first to last.

    Those of all owners are read from totals, which only a reader without a barrier may read.
    """
    span = {"start": start, "end": end}
    found = _all(span) if owner_ids is None else _some(_parameters(owner_ids, start, end))
    every = (start + number * MINUTE for number in range((end - start) // MINUTE))
    return [found.get(at) or Minute(at=at, outcomes={}, wait=None, run=None) for at in every]


def _all(span: Mapping[str, Any]) -> dict[datetime, Minute]:
    return {
        row["minute"]: Minute(
            at=row["minute"],
            outcomes={state: row[state.value] for state in OUTCOMES if row[state.value]},
            wait=percentiles_of(row["wait_buckets"], row["wait_counts"]),
            run=percentiles_of(row["run_buckets"], row["run_counts"]),
        )
        for row in sql.run("system/rollup_totals", span)
    }


def _some(given: Mapping[str, Any]) -> dict[datetime, Minute]:
    outcomes: dict[datetime, dict[State, int]] = defaultdict(dict)
    for row in sql.run("system/rollup_outcomes", given):
        outcomes[row["minute"]][State(row["outcome"])] = row["count"]
    counts: dict[tuple[datetime, bool], dict[int, int]] = defaultdict(dict)
    for row in sql.run("system/rollup_times", given):
        counts[row["minute"], row["is_wait"]][row["bucket"]] = row["count"]
    return {
        at: Minute(
            at=at,
            outcomes=found,
            wait=percentiles(counts.get((at, True), {})),
            run=percentiles(counts.get((at, False), {})),
        )
        for at, found in outcomes.items()
    }


def by_owner(
    owner_ids: Collection[int] | None, *, start: datetime, end: datetime
) -> list[OwnerTotals]:
    """Return the totals of each owner that has any, most worker time first."""
    given = _parameters(owner_ids, start, end)
    ended = sorted(state.value for state in ENDED)
    rows = sql.run("system/rollup_owners", {**given, "ended": ended})
    # Other owners count in the whole, also for a reader who does not see them.
    total = worker_seconds(start=start, end=end)
    return [
        # A minute may have been counted again between the two statements.
        OwnerTotals(**row, received=min(1.0, row["worker_seconds"] / total) if total else None)
        for row in rows
    ]


def worker_seconds(*, start: datetime, end: datetime) -> float:
    """Return the worker time of all owners in a span."""
    with barrier.lifted():
        [whole] = sql.run("system/rollup_worker_seconds", {"start": start, "end": end})
    return float(whole["worker_seconds"])


def entitled_by_owner(
    waited: Mapping[str, float], *, start: datetime, end: datetime
) -> dict[int, float]:
    """Return the part of the worker time of a span to which its weight entitles each owner, by id.

    `waited` are the owners with work now, by name, with the seconds for which the oldest has
    waited. Compare it with `received` of the same span. Empty if there was no worker time.
    """
    given = {"slugs": list(waited), "waited": list(waited.values()), "start": start, "end": end}
    # Other owners count, also for a reader who does not see them.
    with barrier.lifted():
        rows = sql.run("system/rollup_entitled", given)
    return {row["owner_id"]: float(row["entitled"]) for row in rows}


def failures(
    owner_ids: Collection[int] | None, *, start: datetime, end: datetime
) -> list[Failures]:
    """Return the failures of a span by task and error, most failed runs first."""
    given = _parameters(owner_ids, start, end)
    rows = sql.run("system/rollup_failures", {**given, "most": MOST_FAILURES})
    return [Failures(**row) for row in rows]


def _parameters(
    owner_ids: Collection[int] | None, start: datetime, end: datetime
) -> dict[str, Any]:
    owners = None if owner_ids is None else list(owner_ids)
    return {"owners": owners, "start": start, "end": end}
