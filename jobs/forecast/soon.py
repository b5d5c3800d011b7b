"""The next openings of windows, and a rough forecast whether the waiting runs fit into them.

For a page with many owners: it ignores retries, and takes owners with work to have enough of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from typing import Any, Final

from jobs.core import sql
from jobs.core.counting import within
from jobs.forecast.capacity import run_times_of, slots_of
from jobs.forecast.course import Capacity, Group, Work
from jobs.forecast.estimate import forecast
from jobs.forecast.replay.load import setting_of
from jobs.models import Owner
from jobs.windows import CalendarHours, Effect, Entry

AHEAD: Final = timedelta(hours=24)
READ: Final = 10_000
"""Held runs that are read at most, those that may start first."""
MOST: Final = 6
"""Openings that are returned."""
MILLISECONDS: Final = 250
CALLS: Final = 100
"""Calls of a simulation."""


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
    begins = max(found.opens_at, now)
    open_seconds = (found.closes_at - begins).total_seconds()
    slots = slots_of(first["queue"])
    # The others have enough work for all of the opening.
    enough = max(slots, ceil(max(0.0, open_seconds) * slots / times.seconds))
    others = {one.slug: setting_of(one) for one in sharing if one.pk != owner.pk}
    works = [
        Work(
            count=enough,
            seconds=times.seconds,
            owner=slug,
            since=(begins - now).total_seconds(),
        )
        for slug in others
    ]
    opens = found.opens_at.astimezone(UTC).replace(tzinfo=None)
    window = Entry(Effect.WINDOW, opens, found.closes_at - found.opens_at, "UTC")
    told = forecast(
        [Group(count=found.count, seconds=times.seconds, calendars=(CalendarHours((window,)),))],
        Capacity(slots=slots, own=setting_of(owner), others=others, works=works),
        now=now,
        most=CALLS,
    )
    return replace(found, left_over=max(told.left_over, told.never))
