"""Whether a run may start now by the calendars that apply to it, and when else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from jobs.calendars.hours import hours_of
from jobs.core import sql
from jobs.models import Calendar, WindowPolicy
from jobs.schedules.phases import GOLDEN
from jobs.windows import CalendarHours, Gate, gate_of
from jobs.windows.gate import OPEN

AGAIN: Final = timedelta(hours=1)
"""A run without an opening within a year is gated again after this time."""
_CALENDARS_OF: Final = """
SELECT target, jobs_calendars(%s, %s, target, %s) AS ids FROM unnest(%s::bigint[]) AS of (target)
"""


@dataclass(frozen=True, slots=True)
class GateInput:
    """The facts that decide when a run may start."""

    calendars: tuple[int, ...]
    needed: timedelta
    policy: str = WindowPolicy.OBEY


def gates(asked: Sequence[GateInput], *, now: datetime, ids: Iterable[UUID]) -> list[Gate]:
    """Return the gate of each run, in order; equal inputs are decided once."""
    known = hours_of({one for given in asked for one in given.calendars})
    spread = spread_of(known)
    decided: dict[tuple[GateInput, timedelta], Gate] = {}
    found = []
    for given, run_id in zip(asked, ids, strict=True):
        key = given, _start_delay(run_id, given.calendars, spread)
        if key not in decided:
            decided[key] = gate_of_one(given, known, now=now, delay=key[1])
        found.append(decided[key])
    return found


def gate_of_one(
    given: GateInput, known: dict[int, CalendarHours], *, now: datetime, delay: timedelta
) -> Gate:
    if given.policy == WindowPolicy.OVERRIDDEN:
        return OPEN
    if given.policy == WindowPolicy.REQUIRED and not given.calendars:
        return Gate()
    hours = [known[one] for one in given.calendars if one in known]
    return gate_of(hours, now=now, needed=given.needed, delay=delay)


def spread_of(known: Collection[int]) -> dict[int, int]:
    """Return the spread of starts in seconds, by the ids of the calendars that have one."""
    rows = Calendar.objects.filter(id__in=known, spread_seconds__gt=0)
    return dict(rows.values_list("id", "spread_seconds"))


def _start_delay(run_id: UUID, calendars: Sequence[int], spread: dict[int, int]) -> timedelta:
    """Return a run's place in the spread of its calendars; it is always the same."""
    # Ids of one submit are consecutive: these products spread them evenly.
    place = (run_id.int * GOLDEN & 2**64 - 1) >> 32
    return longest_spread(calendars, spread) * (place / 2**32)


def longest_spread(calendars: Sequence[int], spread: dict[int, int]) -> timedelta:
    """Return the longest spread of starts of these calendars."""
    return timedelta(seconds=max((spread.get(one, 0) for one in calendars), default=0))


def calendars_of(
    owner_id: int, *, job_id: int | None, target_ids: Collection[int | None], policy: str = ""
) -> dict[int | None, tuple[int, ...]]:
    """Return the ids of the calendars that count, in order, by target (None: without one)."""
    rows = sql.query(_CALENDARS_OF, [owner_id, job_id, policy, list(target_ids)])
    return {row["target"]: tuple(row["ids"]) for row in rows}


def opening_times(
    gate: Gate, *, now: datetime, needed: timedelta
) -> tuple[datetime | None, datetime | None]:
    """Return when a run is gated next (None: it is queued now), and until when it may start.

    When an opening begins, shorter runs come first, since more of them fit: by a microsecond for
    each second that they are shorter.
    """
    if gate.is_open:
        return None, gate.not_after
    return (gate.opens_at or now + AGAIN) + needed / 1_000_000, None


def why_held(gate: Gate) -> str:
    return "window closed" if gate.opens_at else "no window within a year"
