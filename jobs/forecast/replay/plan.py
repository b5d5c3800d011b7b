"""A plan: the recorded waits of a span, those of its replay with changes, and the slots needed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from celery import current_app

from fleet import fair_queues
from jobs.calendars.hours import read_hours
from jobs.core.errors import OptionError
from jobs.core.inputs import refuse_naive
from jobs.forecast.replay.changes import Changes, changed_hours
from jobs.forecast.replay.load import Load
from jobs.forecast.replay.objective import Aim, Needed, slots_needed
from jobs.forecast.replay.recorded import Recorded, count_attempts, read_recorded
from jobs.forecast.replay.results import OwnerOutcome, recorded_owners
from jobs.forecast.replay.rolled import count_rolled, read_rolled
from jobs.forecast.replay.simulation import Replay
from jobs.models import Calendar, Owner
from jobs.windows import CalendarHours

LONGEST: Final = timedelta(days=31)
KEPT: Final = 0.5
"""The part of the attempts in the statistics that must still have rows for a load from rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was recorded, and what a replay says. Waits are in seconds."""

    start: datetime
    end: datetime
    queue: str
    runs: int
    """Attempts in the span, of all queues."""
    each: int
    """How many of them a replayed one stands for."""
    is_from_rows: bool
    """False: the load is from the statistics."""
    recorded_slots: int
    slots: int
    start_cost_seconds: float
    recorded: Sequence[OwnerOutcome]
    replayed: Sequence[OwnerOutcome]
    jain: float | None
    """Jain's index of received by entitled share; None if fewer than two owners had to wait."""
    ends_after_seconds: float
    """When the last replayed run ends, since the start of the span."""
    needed: Needed | None = None


def make_plan(
    *,
    start: datetime,
    end: datetime,
    changes: Changes,
    growth: float,
    most_runs: int,
    queue: str = "",
    aims: Mapping[str, Aim] | None = None,
    aim: Aim | None = None,
    seconds: float | None = None,
) -> Plan:
    """Return the plan of a span. `growth` is that of the statistics' histograms.

    `aims` are objectives by owner; `aim` is that of all others. Beyond `most_runs` a sample is
    replayed. Raises OptionError for a wrong span, or for names that do not exist; OutOfTime if it
    takes longer than `seconds`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    _check_span(start, end)
    queue = queue or next(iter(fair_queues(current_app)), "jobs")
    found, is_from_rows = _read(
        start,
        end,
        queue=queue,
        changes=changes,
        growth=growth,
        most=most_runs,
        deadline=deadline,
    )
    load = changed(found.load, changes)
    wanted = dict.fromkeys(load.owners, aim) if aim else {}
    wanted |= {name: one for name, one in (aims or {}).items() if name in load.owners}
    outcome = Replay(load, deadline=deadline).run()
    return Plan(
        start=start,
        end=end,
        queue=queue,
        runs=found.runs,
        each=load.each,
        is_from_rows=is_from_rows,
        recorded_slots=found.load.slots,
        slots=load.slots,
        start_cost_seconds=load.overhead.start / 1_000_000,
        recorded=recorded_owners(found.waits, each=load.each),
        replayed=outcome.owners(within=None if aim is None else aim.seconds),
        jain=outcome.jain,
        ends_after_seconds=outcome.ended_at / 1_000_000,
        needed=slots_needed(load, wanted, deadline=deadline) if wanted else None,
    )


def stored_aims() -> dict[str, Aim]:
    """Return the objectives that owners have."""
    rows = Owner.objects.filter(wait_objective_seconds__isnull=False)
    return {
        owner.slug: Aim(
            float(owner.wait_objective_seconds or 0), owner.wait_objective_percent / 100
        )
        for owner in rows
    }


def changed(load: Load, changes: Changes) -> Load:
    """Return a load with other weights, caps and slots; raise OptionError for an unknown owner."""
    owners = dict(load.owners)
    for option, values in (("weight", changes.weights), ("cap", changes.caps)):
        for name, value in values.items():
            if name in owners:
                owners[name] = replace(owners[name], **{option: value})
            elif not Owner.objects.filter(slug=name).exists():
                raise OptionError(option, f"there is no owner {name!r:.120}")
    return replace(load, owners=owners, slots=changes.slots or load.slots)


def _check_span(start: datetime, end: datetime) -> None:
    refuse_naive("from", start)
    refuse_naive("to", end)
    if end <= start:
        raise OptionError("to", "is not later than from")
    if end - start > LONGEST:
        raise OptionError("to", f"is at most {LONGEST.days} days later than from")


def _read(
    start: datetime,
    end: datetime,
    *,
    queue: str,
    changes: Changes,
    growth: float,
    most: int,
    deadline: float | None,
) -> tuple[Recorded, bool]:
    span = {"start": start, "end": end}
    hours = _changed_hours(changes)
    rows, rolled = count_attempts(**span), count_rolled(**span)
    is_from_rows = rows >= KEPT * rolled
    runs = rows if is_from_rows else rolled
    each = max(1, -(-runs // most))
    if is_from_rows:
        return read_recorded(**span, queue=queue, each=each, runs=runs, hours=hours), True
    if changes.windows:
        raise OptionError("window", "needs the rows of runs, and those of this span were removed")
    return read_rolled(**span, growth=growth, each=each, runs=runs, deadline=deadline), False


def _changed_hours(changes: Changes) -> dict[int, CalendarHours]:
    """Return the hours of calendars with other windows, by id. A name is `owner/name` if needed."""
    found = {}
    for name, windows in changes.windows.items():
        slug, separator, own = name.partition("/")
        rows = Calendar.objects.filter(name=name)
        if separator and not rows:
            rows = Calendar.objects.filter(owner__slug=slug, name=own)
        calendars = list(rows.select_related("owner").prefetch_related("windows__decisions")[:2])
        if len(calendars) != 1:
            problem = "there are several calendars" if calendars else "there is no calendar"
            raise OptionError("window", f"{problem} {name!r:.220}; write OWNER/NAME=…")
        [calendar] = calendars
        zone = calendar.owner.zone if calendar.owner else "UTC"
        found[calendar.pk] = changed_hours(read_hours(calendar), windows, zone=zone)
    return found
