"""The next openings of windows, and a rough estimate whether the waiting runs fit into them.

The forecast of a submission (`will_it_fit.py`) simulates; this only divides, for a page with many
owners. It ignores retries, and work of the same owner outside the opening.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import Any, Final

from jobs.core import sql
from jobs.core.counting import within
from jobs.forecast.capacity import run_times_of, slots_of
from jobs.models import Owner

AHEAD: Final = timedelta(hours=24)
READ: Final = 10_000
"""Held runs that are read at most, those that may start first."""
MOST: Final = 6
"""Openings that are returned."""
MILLISECONDS: Final = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class OpensNext:
    """An opening for which runs of an owner are held. Behind `count` may be more than were read."""

    owner: Owner
    calendar: str
    """Empty: no calendar has an opening then, and the runs are only looked at again."""
    opens_at: datetime
    closes_at: datetime | None
    count: int
    left_over: int | None
    """How many of them will not start in it; None: no run time is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Runs that start in one opening: their number, the seconds of each, and the slots for them."""

    count: int
    seconds: float
    open_seconds: float
    slots: int
    weight: float
    weights: float
    """The weights of all owners that share the slots meanwhile, with this one's."""
    max_running: int | None = None
    per_minute: int | None = None


def left_over(demand: Demand) -> int:
    """Return how many runs will not start in their opening. Pure."""
    slots = min(demand.slots * demand.weight / demand.weights, demand.max_running or inf)
    started = slots * demand.open_seconds / demand.seconds
    if demand.per_minute is not None:
        started = min(started, demand.per_minute * demand.open_seconds / 60)
    return max(0, demand.count - int(started))


def opens_next(
    owner_ids: Collection[int] | None, *, now: datetime, busy: Collection[Owner] | None = ()
) -> list[OpensNext] | None:
    """Return the next openings of the next 24 h for which runs are held; None: too many to read.

    `owner_ids` are the owners that the reader sees, None: all. `busy` are owners with work, which
    share the slots; None: Redis is away, and nothing is estimated. Call it with the barrier lifted:
    openings are found by what applies to a run.
    """
    given = {
        "owners": None if owner_ids is None else list(owner_ids),
        "now": now,
        "until": now + AHEAD,
        "read": READ,
        # Spread starts have a minute each: some of these rows are of one opening.
        "most": 4 * MOST,
    }
    rows = within(MILLISECONDS, partial(sql.run, "forecast/opens_next", given))
    if rows is None:
        return None
    groups = _by_opening(rows)[:MOST]
    known = Owner.objects.in_bulk({group[0]["owner_id"] for group in groups})
    sharing = None if busy is None else {*busy, *known.values()}
    return [
        _opening(known[group[0]["owner_id"]], group, sharing=sharing, now=now)
        for group in groups
        if group[0]["owner_id"] in known
    ]


def _by_opening(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        opening = row["opens_at"] or row["minute"]
        groups[row["owner_id"], row["calendar"], opening].append(row)
    return list(groups.values())


def _opening(
    owner: Owner, rows: Sequence[dict[str, Any]], *, sharing: set[Owner] | None, now: datetime
) -> OpensNext:
    first = rows[0]
    found = OpensNext(
        owner=owner,
        calendar=first["calendar"] or "",
        opens_at=first["opens_at"] or first["next_at"],
        closes_at=first["closes_at"],
        count=sum(row["runs"] for row in rows),
        left_over=None,
    )
    if found.closes_at is None or sharing is None:
        return found
    times = run_times_of(owner, first["task"], first["queue"], now=now)
    if times is None:
        return found
    demand = Demand(
        count=found.count,
        seconds=times.seconds,
        open_seconds=(found.closes_at - max(found.opens_at, now)).total_seconds(),
        slots=slots_of(first["queue"]),
        weight=owner.weight,
        weights=sum(one.weight for one in sharing),
        max_running=owner.max_running,
        per_minute=owner.rate_limit_per_minute,
    )
    return replace(found, left_over=left_over(demand))
