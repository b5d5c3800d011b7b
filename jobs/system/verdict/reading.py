"""Read what the overview shows. Each read has a limit of rows or of time; none scans runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from django.db.models import QuerySet

from fleet import Snapshot
from jobs.calendars.reads.awaited import awaited_approval
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.core.counting import capped_count
from jobs.core.states import State
from jobs.models import Job, Owner, Rollout, Run
from jobs.models.access import Access
from jobs.owners.standing import Standing, snapshot, standings, starved
from jobs.recurring.failing_long import failing_long
from jobs.recurring.health import broken_jobs, late_jobs
from jobs.rollouts.reads import rollouts_to_decide
from jobs.runs import dispatch
from jobs.runs.reads.counts import Counts, states_by
from jobs.system.notices.unsent import all_rows, stopped_names, unsent_queue
from jobs.system.rollups import reads as rollups
from jobs.system.rollups.objectives import Objective, objectives, worst
from jobs.system.state import SystemState, system_state, unserved_queues
from jobs.system.unserved import Unserved, unserved
from jobs.system.verdict.facts import Facts

SHARES_MINUTES: Final = 5
MINUTES: Final = 60
OWNERS: Final = 20
FAILURES: Final = 8

OwnerIds = Collection[int] | None
"""Ids of the owners that are shown; None: all."""
Rows = TypeVar("Rows", bound="QuerySet[Any]")


class Viewer(Protocol):
    """Decides which rows are read: a Visit of a page, or an operator at the command line."""

    @property
    def access(self) -> Access: ...
    @property
    def owner(self) -> Owner | None: ...
    def rows(self, rows: Rows, *, path: str = "owner") -> Rows: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolled:
    """The last minutes, from rollups. `until` None: nothing has been counted yet."""

    until: datetime | None = None
    minutes: Sequence[rollups.Minute] = ()
    failures: Sequence[rollups.Failures] = ()
    received: Mapping[int, float | None]
    entitled: Mapping[int, float] | None = None
    """Of the same minutes; None: no worker time, or Redis is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """All that one look at the overview needs."""

    facts: Facts
    rolled: Rolled
    objectives: Sequence[Objective] | None
    """Those of owners that have one; None: too much to read."""
    standings: Sequence[Standing]
    failed: Mapping[int, int]
    """Runs of these owners that failed in the last hour."""
    held: Counts | None
    counts: Mapping[str, int]


def owner_ids(visit: Viewer) -> OwnerIds:
    """Return the owners of a visit: the chosen one, those of the visitor, or None for all."""
    if visit.owner is not None:
        return frozenset({visit.owner.pk})
    return None if visit.access.sees_all else visit.access.owner_ids()


def read(visit: Viewer) -> Read:
    """Read the overview of a visit, or of the whole installation."""
    ids = owner_ids(visit)
    with barrier.lifted():
        system = system_state()
    seen = snapshot()
    rolled = read_rolled(ids, seen)
    with barrier.lifted():
        aims = objectives(ids)
    rows = visit.rows(Owner.objects.all(), path="pk")
    found = standings(rows, seen, rolled.received, rolled.entitled, most=OWNERS)
    keys = [one.owner.pk for one in found]
    return Read(
        facts=_facts(
            visit,
            installation(visit, system=system, is_redis_away=seen is None),
            standings_of=found,
            objectives_of=aims or (),
        ),
        objectives=aims,
        rolled=rolled,
        standings=found,
        failed=_failed(keys, rolled.until),
        held=states_by("owner", keys, states={State.HELD}),
        counts=_counts(visit),
    )


def read_rolled(ids: OwnerIds, seen: Snapshot | None) -> Rolled:
    """Return the last hour from rollups, and the shares of the last minutes."""
    span, newest = rollups.last_minutes(MINUTES), rollups.last_minutes(SHARES_MINUTES)
    if span is None or newest is None:
        return Rolled(received={})
    hour, last = ({"start": start, "end": end} for start, end in (span, newest))
    return Rolled(
        until=span[1],
        minutes=rollups.minutes(ids, **hour),
        failures=rollups.failures(ids, **hour)[:FAILURES],
        received={one.owner_id: one.received for one in rollups.by_owner(ids, **last)},
        entitled=None if seen is None else rollups.entitled_by_owner(seen.waited(), **last) or None,
    )


def _failed(owner_keys: Collection[int], until: datetime | None) -> dict[int, int]:
    if until is None:
        return {}
    start = until - MINUTES * rollups.MINUTE
    found = rollups.by_owner(owner_keys, start=start, end=until)
    return {one.owner_id: one.failed for one in found}


def _counts(visit: Viewer) -> dict[str, int]:
    runs = visit.rows(Run.objects.all())
    # Workers take more runs than they have slots: those are admitted, and start as slots get free.
    shown = (State.RUNNING, State.ADMITTED, State.QUEUED, State.HELD, State.RETRYING)
    return {state.value: capped_count(runs.filter(state=state)) for state in shown}


def installation(visit: Viewer, *, system: SystemState, is_redis_away: bool) -> Facts:
    """Return the facts about the installation alone: none of an owner, a job or a window."""
    runs = visit.rows(Run.objects.all())
    # The condition of the index run_blocked, word for word.
    blocked = runs.filter(state=State.QUEUED, blocked_by="task").exclude(blocked_by="")
    # Not `first()`, which would order by id: PostgreSQL would then read the whole backlog.
    unknown = next(iter(blocked.order_by().values_list("task", "queue")[:1]), None)
    # This reads tables of the system, and gets the visitor's owners.
    with barrier.lifted():
        late = late_jobs(owner_ids(visit), now=system.at)
    if not visit.access.permits("jobs.view_worker"):
        hidden = ("",) * len(system.without_redis)
        system = replace(
            system, lost=(), without_redis=hidden, beat_host="", beat_ahead_seconds=None, pins={}
        )
        idle = Unserved()
    else:
        # Plain messages may be of any owner: they are shown to those who see the workers.
        idle = Unserved() if is_redis_away else unserved(system.queues)
    return Facts(
        system=system,
        system_queue=setting("SYSTEM_QUEUE"),
        is_redis_away=is_redis_away,
        refuses_password=is_redis_away and dispatch.broker().refuses_password,
        unserved=[*dict.fromkeys([*unserved_queues(system, runs), *idle.fair])],
        unserved_stock=idle.stock,
        undeclared=idle.undeclared,
        unsent=unsent_queue(system.queues, *map(visit.rows, all_rows())),
        late_count=_seen_jobs(visit, late.keys),
        unknown_task=unknown,
    )


def _facts(
    visit: Viewer,
    found: Facts,
    *,
    standings_of: Sequence[Standing],
    objectives_of: Sequence[Objective],
) -> Facts:
    """Return the facts of an installation with those of owners, jobs and windows."""
    ids, now = owner_ids(visit), found.system.at
    held = visit.rows(Run.objects.filter(state=State.HELD))
    # These read tables of the system, and get the visitor's owners.
    with barrier.lifted():
        broken = broken_jobs(ids)
        failing = failing_long(ids, now=now)
    return replace(
        found,
        stopped=stopped_names(*map(visit.rows, all_rows())),
        broken_count=_seen_jobs(visit, broken.keys),
        awaited=awaited_approval(held, visit.access),
        rollouts=rollouts_to_decide(visit.rows(Rollout.objects.all())),
        failing=failing,
        starved=starved(standings_of),
        burning=worst(objectives_of),
    )


def _seen_jobs(visit: Viewer, keys: Collection[Any]) -> int:
    return visit.rows(Job.objects.filter(pk__in=keys)).count() if keys else 0
