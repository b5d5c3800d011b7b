"""The capacity for an owner's runs: slots, the work of others, and how long runs take.

Read from rows; the average run times of other owners come from the fair queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Sum

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.ids import first_id_of
from jobs.forecast.course import OWN, Capacity, Recurring, Work
from jobs.forecast.replay.load import setting_of
from jobs.models import Owner, Rollout, RolloutState, Worker
from jobs.runs.dispatch import owners

MOST_ROWS: Final = 200_000
"""Waiting rows read at most. Beyond that the forecast is too optimistic."""
MOST_WORKS: Final = 500
"""Submissions of others that are simulated, those with the most work; later ones are left out."""
RECENT: Final = timedelta(days=30)
BUSY: Final = 0.6
"""If runs of a sample used this part of the slots, we assume that no slot was free."""
SPREAD: Final = 0.7
"""The spread of run times before a pace is measured: other load may come since they were."""
MOST_OVERHEAD: Final = 4.0
"""The largest assumed ratio of the time in a slot to the run time, for runs that waited for a slot.
If the measured ratio is larger, we assume that other owners used the slots too."""


def slots_of(queue: str) -> int:
    """Return how many runs of a queue the living workers can run at once."""
    workers = Worker.objects.alive().filter(queues__contains=[queue])
    return workers.aggregate(slots=Sum("slots"))["slots"] or 0


@dataclass(frozen=True, slots=True)
class RunTimes:
    """How runs of a task are expected to go.

    Each takes a slot for `seconds`. The part `retry_share` fails at first, up to `failures` times.
    """

    seconds: float
    retry_share: float = 0.0
    failures: int = 0
    spread: float = 1.0
    """How far a run may take longer on a slot, as a part of `seconds`; 1.0: twice as long."""
    failed_seconds: float = 0.0
    """How long a failed attempt may take, for example until a timeout."""


def run_times_of(
    owner: Owner, task: str, queue: str, *, now: datetime, expected: RunTimes | None = None
) -> RunTimes | None:
    """Return how the newest runs of a task went; None when nothing is known.

    If they kept the slots busy, the time that a slot needs between two runs is included. Without
    runs of the task, the result is `expected`, or else the owner's average in the fair queues.
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
        # No slot was free, so the unused time is overhead of the runs too.
        part = row["backlogged"] / max(1, slots_of(queue))
        overhead = max(overhead, min(MOST_OVERHEAD, 1 / part))
    seconds = max(row["seconds"], 0.001) * overhead
    failed = row["failed_seconds"] or 0.0
    return RunTimes(seconds, row["retry_share"], row["failures"], SPREAD, failed)


def capacity_of(
    owner: Owner, queue: str, *, now: datetime, seconds: float, without: int | None = None
) -> Capacity:
    """Return the capacity for an owner's runs in a queue; ignores the submission `without`.

    `seconds` is the run time of runs of which nothing is known.
    """
    facts = {"queue": queue, "without": without, "most": MOST_ROWS}
    rows = sql.run("forecast/waiting_work", facts)
    rollouts = _rollouts(queue, without)
    rows += [row for rollout in rollouts for row in _later_waves(rollout)]
    queues = [queue, ""] if queue == setting("JOBS_QUEUE") else [queue]
    rates = sql.run("forecast/recurring_rates", {"queues": queues, "now": now})
    known = Owner.objects.in_bulk({row["owner_id"] for row in (*rows, *rates)})
    averages = _averages(*(one.slug for one in known.values())) if known else {}
    works = []
    for row in rows:
        whose = known.get(row["owner_id"])
        since = None if whose is None else _since(row["since"], whose, now)
        if whose is None or since is None:
            continue
        works.append(
            Work(
                count=row["count"],
                seconds=averages.get(whose.slug, seconds),
                owner=OWN if whose.pk == owner.pk else whose.slug,
                submission=str(row["submission_id"] or "single"),
                since=since,
                wave=row.get("wave", 0),
            )
        )
    recurring = [
        Recurring(
            per_second=row["per_second"],
            seconds=averages.get(known[row["owner_id"]].slug, seconds),
            owner=OWN if row["owner_id"] == owner.pk else known[row["owner_id"]].slug,
        )
        for row in rates
        if row["owner_id"] in known and not known[row["owner_id"]].is_paused(at=now)
    ]
    others = {whose.slug: setting_of(whose) for whose in known.values() if whose.pk != owner.pk}
    works.sort(key=lambda work: -work.count * work.seconds)
    return Capacity(
        slots=slots_of(queue),
        own=setting_of(owner),
        others=others,
        works=works[:MOST_WORKS],
        between={str(one.pk): one.between_seconds or 0.0 for one in rollouts},
        recurring=recurring,
    )


def _rollouts(queue: str, without: int | None) -> list[Rollout]:
    """Return the rollouts of others that go on by themselves."""
    rows = Rollout.objects.filter(
        state__in=(RolloutState.ROLLING, RolloutState.WAITING),
        needs_approval=False,
        submission__queue=queue,
    )
    return list(rows.exclude(pk=without).order_by("pk")[:MOST_WORKS])


def _later_waves(rollout: Rollout) -> Iterator[dict[str, Any]]:
    """Yield the waves of a rollout that are not released, as rows of work."""
    for number, wave in enumerate(rollout.waves[rollout.wave :], rollout.wave + 1):
        yield {
            "owner_id": rollout.owner_id,
            "submission_id": rollout.pk,
            "since": rollout.next_at,
            "count": wave["size"],
            "wave": number,
        }


def _since(at: datetime | None, owner: Owner, now: datetime) -> float | None:
    """Return in how many seconds work needs workers; None while its owner is paused."""
    if owner.is_paused(at=now):
        if owner.paused_until is None:
            return None
        at = max(at or now, owner.paused_until)
    return max(0.0, (at - now).total_seconds()) if at else 0.0


def _averages(*slugs: str) -> Mapping[str, float]:
    """Return the average run times in the fair queues, for those of the owners that had runs."""
    try:
        snapshot = owners().snapshot(*slugs, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable:
        return {}
    return {
        name: seen.worker_seconds / seen.finished_count
        for name, seen in snapshot.owners.items()
        if seen.finished_count and seen.worker_seconds > 0
    }
