"""Forecasts of submissions in waves: which runs are simulated, and of which none can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from typing import Any

from jobs.core.phrases import phrase
from jobs.forecast.course import OWN, Capacity
from jobs.forecast.estimate import Forecast
from jobs.models import Owner, Rollout, Target
from jobs.rollouts.waves import spread


def in_order(owner: Owner, names: Sequence[str], *, by: str) -> list[str]:
    """Return the names in the order of waves that take one target of each value of a label."""
    rows = Target.objects.filter(owner=owner, name__in=set(names)).values_list("name", "labels")
    labels = dict(rows)
    return [names[place] for place in spread(repr(labels.get(one, {}).get(by)) for one in names)]


def cut(names: Sequence[str], sizes: Sequence[int]) -> list[Sequence[str]]:
    """Return the names of each wave; all in one without sizes."""
    bounds = [0, *accumulate(sizes or [len(names)])]
    return [names[start:end] for start, end in pairwise(bounds)]


def released_first(
    rollout: Rollout, rows: Sequence[dict[str, Any]], *, running: float, now: datetime
) -> tuple[list[dict[str, Any]], int]:
    """Return the waiting runs that can be simulated, and how many others await an approval.

    The running runs of a wave need `running` seconds until they have ended and that is seen.
    """
    told = [row for row in rows if not row["wave"] or not rollout.needs_approval]
    first = min((row["wave"] for row in told), default=0)
    for row in told:
        if row["wave"] and rollout.deadline_seconds is not None:
            row["deadline_at"] = now + timedelta(seconds=rollout.deadline_seconds)
        if first and row["wave"] == first:
            # No released run waits: those of the wave before run, or have ended.
            rest = timedelta(seconds=running + (rollout.between_seconds or 0))
            begins = rest if rollout.next_at is None else rollout.next_at - now
            row |= {"wave": 0, "wait": max(begins, timedelta(0))}
    return told, sum(row["count"] for row in rows) - sum(row["count"] for row in told)


def in_waves(capacity: Capacity, between: float, *, lag: float) -> Capacity:
    return replace(capacity, between={**capacity.between, OWN: between}, lag=lag)


def with_awaiting(found: Forecast, count: int, *, wave: int) -> Forecast:
    """Add runs that approvals release, from a wave on: when they end is not known."""
    note = phrase(
        "From wave %(wave)s on, waves wait for an approval: when these %(count)s runs end cannot be"
        " told.",
        wave=wave,
        count=count,
    )
    return replace(
        found,
        awaiting=count,
        warnings=(*found.warnings, note),
        finishes_at=None,
        earliest_at=None,
        latest_at=None,
    )
