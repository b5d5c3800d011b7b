"""The vitals of an installation, for metrics: what is late, what waits, which workers are alive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from jobs.core import sql
from jobs.core.conf import plain_queues, setting
from jobs.core.counting import within
from jobs.core.states import State
from jobs.models import Run, Worker
from jobs.runs.dispatch import owners
from jobs.schedules import moment_of
from jobs.system.lease import BEAT
from jobs.system.partitions import days_left

BATCHES: Final = 10_000
"""Batches of the outbox that are looked at, the oldest ones."""
COUNT_MILLISECONDS: Final = 250
"""Most time to count the runs of a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """Numbers of one moment, by PostgreSQL's clock. Lags are in seconds, and not below 0."""

    is_beat_leading: bool
    beat_lag: float | None
    """Since the last pulse, which beat sends and the system worker makes; None: there was none."""
    tick_lag: float | None
    """Since the first due time that has not been triggered; None: no pulse was made yet."""
    statistics_lag: float | None
    """Since the end of the last minute that is final; None: none was counted yet."""
    unpublished: int
    """Runs in the oldest batches of the outbox."""
    unpublished_seconds: float
    """The age of the oldest batch; 0 without one."""
    partitions_ahead: int
    """Whole days after today with a partition; -1: today has none."""
    database_bytes: int
    held: int | None
    """Held runs; None: too many to count."""
    failed: int | None
    """Failed runs, which are dead letters; None: too many to count."""
    workers: int
    """Workers that are alive and take runs from a fair queue."""
    slots: int
    workers_by_queue: Mapping[str, int]
    """The same by fair queue; one that consumes several counts in each."""
    system_workers: int
    """Workers that are alive and take from the system's queue."""
    versions: Mapping[str, int]
    """Workers that are alive, by their version of Fairshift."""


def vitals() -> Vitals:
    """Return the vitals. Call it with the barrier lifted: they are of all owners."""
    [row] = sql.run("system/vitals", {"beat": BEAT, "most": BATCHES})
    now, due = row["now"], row["due_slot"]

    def since(moment: object) -> float | None:
        return None if moment is None else max(0.0, (now - moment) / timedelta(seconds=1))

    alive = list(Worker.objects.alive().values_list("slots", "queues", "version"))
    fair = owners().queues
    with_runs = set(fair) - plain_queues()
    takes_runs = [(slots, queues) for slots, queues, _version in alive if with_runs & set(queues)]
    return Vitals(
        is_beat_leading=row["beat_until"] is not None and row["beat_until"] > now,
        beat_lag=since(row["pulsed_at"]),
        tick_lag=None if due is None else since(moment_of(due)),
        statistics_lag=since(row["final_until"]),
        unpublished=row["unpublished"],
        unpublished_seconds=since(row["unpublished_since"]) or 0.0,
        partitions_ahead=days_left(),
        database_bytes=row["bytes"],
        held=_count(State.HELD),
        failed=_count(State.FAILED),
        workers=len(takes_runs),
        slots=sum(slots for slots, _queues in takes_runs),
        workers_by_queue={
            queue: sum(queue in queues for _slots, queues, _version in alive) for queue in fair
        },
        system_workers=sum(setting("SYSTEM_QUEUE") in queues for _slots, queues, _v in alive),
        versions=Counter(version for _slots, _queues, version in alive),
    )


def _count(state: State) -> int | None:
    return within(COUNT_MILLISECONDS, Run.objects.filter(state=state).count)
