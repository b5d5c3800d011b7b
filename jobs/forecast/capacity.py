"""What runs of an owner would find: slots, the work of others before them, and how long they take.

Read from rows; of other owners' run times the fair queues know the average.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import Final

from django.db.models import Sum

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.ids import first_id_of
from jobs.forecast.shares import Capacity, Rival, Work
from jobs.models import Owner, Worker
from jobs.runs.dispatch import owners

MOST_ROWS: Final = 200_000
"""Waiting rows read at most. Beyond that the forecast is too optimistic."""
MOST_OTHERS: Final = 100
"""So many other owners are told apart, those with the most work; the rest are as one."""
RECENT: Final = timedelta(days=30)
BUSY: Final = 0.6
"""A sample of runs that filled this part of the slots is taken to have found no slot free."""
MOST_OVERHEAD: Final = 4.0
"""Of runs that had waited for a slot, one is taken for up to so many times its run time: more was
what others had of the slots."""


def slots_of(queue: str) -> int:
    """Return how many runs of a queue the living workers can have at work at once."""
    workers = Worker.objects.alive().filter(queues__contains=[queue])
    return workers.aggregate(slots=Sum("slots"))["slots"] or 0


@dataclass(frozen=True, slots=True)
class RunTimes:
    """What the newest runs of a task say of the next.

    Each takes a slot for `seconds`; the part `retry_share` of them fails at first, up to `failures`
    times.
    """

    seconds: float
    retry_share: float = 0.0
    failures: int = 0


def run_times_of(
    owner: Owner, task: str, queue: str, *, now: datetime, expected: RunTimes | None = None
) -> RunTimes | None:
    """Return how the newest runs of a task went; None when nothing is known.

    Where they kept the slots busy, what a slot does between two runs is in it: the time that they
    did not fill. Without any of the task, `expected` counts, else the owner's average in the fair
    queues.
    """
    facts = {"owner_id": owner.pk, "task": task, "since": first_id_of(now - RECENT)}
    [row] = sql.run("forecast/run_times", facts)
    if not row["count"] and expected is not None:
        return expected
    if not row["count"]:
        average = _averages(owner.slug).get(owner.slug)
        return None if average is None else RunTimes(average)
    filled = (row["at_once"] or 0.0) / max(1, slots_of(queue))
    overhead = 1 / filled if BUSY <= filled < 1 else 1.0
    if row["backlogged"] and not owner.max_running and not owner.rate_limit_per_minute:
        # They found no slot free, however little they filled: so long a slot took for each.
        part = row["backlogged"] / max(1, slots_of(queue))
        overhead = max(overhead, min(MOST_OVERHEAD, 1 / part))
    return RunTimes(max(row["seconds"], 0.001) * overhead, row["retry_share"], row["failures"])


def capacity_of(
    owner: Owner, queue: str, *, now: datetime, seconds: float, without: int | None = None
) -> Capacity:
    """Return what an owner's runs would find in a queue, but for those of a submission.

    `seconds` is how long a run takes of which nothing is known.
    """
    facts = {"queue": queue, "without": without, "most": MOST_ROWS}
    rows = sql.run("forecast/waiting_work", facts)
    known = Owner.objects.in_bulk({row["owner_id"] for row in rows})
    averages = _averages(*(one.slug for one in known.values())) if rows else {}
    own: list[Work] = []
    others: dict[int, list[Work]] = defaultdict(list)
    for row in rows:
        whose = known.get(row["owner_id"])
        if whose is None:
            continue
        each = averages.get(whose.slug, seconds)
        since = _since(row["since"], whose, now)
        if since is None:
            continue
        work = Work(seconds=row["count"] * each, most=row["count"], since=since)
        (own if whose.pk == owner.pk else others[whose.pk]).append(work)
    rate = owner.rate_limit_per_minute
    return Capacity(
        slots=slots_of(queue),
        weight=owner.weight,
        max_running=owner.max_running,
        rate=rate and rate / 60,
        rivals=_some([_rival(known[key], works) for key, works in others.items()]),
        own=own,
    )


def _since(at: datetime | None, owner: Owner, now: datetime) -> float | None:
    """Return in how many seconds work asks for workers; None while its owner is paused."""
    if owner.is_paused(at=now):
        if owner.paused_until is None:
            return None
        at = max(at or now, owner.paused_until)
    return max(0.0, (at - now).total_seconds()) if at else 0.0


def _rival(owner: Owner, works: list[Work]) -> Rival:
    return Rival(works=works, weight=owner.weight, most=owner.max_running or inf)


def _some(rivals: list[Rival]) -> list[Rival]:
    """Return the owners with the most work, and all others as one."""
    rivals.sort(key=lambda rival: -sum(work.seconds for work in rival.works))
    rest = rivals[MOST_OTHERS:]
    works = [work for rival in rest for work in rival.works]
    if works:
        together = Work(
            seconds=sum(work.seconds for work in works),
            most=sum(work.most for work in works),
            since=min(work.since for work in works),
        )
        weight = sum(rival.weight for rival in rest)
        rivals[MOST_OTHERS:] = [Rival(works=[together], weight=weight)]
    return rivals


def _averages(*slugs: str) -> Mapping[str, float]:
    """Return the average run time of these owners in the fair queues, of those that had runs."""
    try:
        snapshot = owners().snapshot(*slugs, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable:
        return {}
    return {
        name: seen.worker_seconds / seen.finished_count
        for name, seen in snapshot.owners.items()
        if seen.finished_count and seen.worker_seconds > 0
    }
