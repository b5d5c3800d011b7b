"""Gating: whether what waits may be queued now, by the calendars that apply, and when else.

For order and for readers: what may start is decided once more by each admission, on the row and on
PostgreSQL's clock. A run that is held is looked at again when its calendars open, or change.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from jobs.calendars import hours as agreed
from jobs.core import sql
from jobs.core.sql import alone
from jobs.core.states import State
from jobs.models import Calendar, WindowPolicy
from jobs.runs.closing import Watch
from jobs.runs.dispatch import publish_on_commit, withdraw_on_commit
from jobs.runs.recording import write_gates
from jobs.windows import Calendar as Hours
from jobs.windows import Gate, gate_of
from jobs.windows.gate import OPEN

CHUNK: Final = 1_000
AGAIN: Final = timedelta(hours=1)
"""A run that no calendar lets start within a year is looked at again so often."""
GATING_SECONDS: Final = 1.0
"""Seconds for which one promotion gates what waits of owners whose calendars changed."""

# The version and the place are in the row: the next promotion may be in another process. A change
# that comes meanwhile is gated when the owner is done with the version that it is at.
_BEGIN: Final = """
UPDATE jobs_owner SET gating_version = %s, gated_to = %s
WHERE id = %s AND gated_to IS NULL AND gated_version < %s
"""
_BEGUN: Final = "SELECT id, gated_to FROM jobs_owner WHERE gated_to IS NOT NULL ORDER BY random()"
_MARK: Final = "UPDATE jobs_owner SET gated_to = %s WHERE id = %s"
_DONE: Final = "UPDATE jobs_owner SET gated_version = gating_version, gated_to = NULL WHERE id = %s"
_WAITING_OF: Final = """
SELECT id FROM jobs_run
WHERE owner_id = %s AND state IN ('held', 'queued') AND id > %s ORDER BY id LIMIT %s
"""
_CALENDARS_OF: Final = """
SELECT target, jobs_calendars(%s, %s, target) AS ids FROM unnest(%s::bigint[]) AS of (target)
"""


@dataclass(frozen=True, slots=True)
class Applying:
    """The calendars that apply to some run, and what decides about it besides."""

    calendars: tuple[int, ...]
    needed: timedelta
    policy: str = WindowPolicy.OBEY


def gates(asked: Sequence[Applying], *, now: datetime, ids: Iterable[UUID]) -> list[Gate]:
    """Return the gate of each run, in order; runs that have all in common are decided once."""
    known = agreed.hours({one for applying in asked for one in applying.calendars})
    spread = _spread(known)
    decided: dict[tuple[Applying, timedelta], Gate] = {}
    found = []
    for applying, run_id in zip(asked, ids, strict=True):
        key = applying, _late(run_id, applying.calendars, spread)
        if key not in decided:
            decided[key] = _gate(applying, known, now=now, late=key[1])
        found.append(decided[key])
    return found


def _gate(applying: Applying, known: dict[int, Hours], *, now: datetime, late: timedelta) -> Gate:
    if applying.policy == WindowPolicy.OVERRIDDEN:
        return OPEN
    if applying.policy == WindowPolicy.REQUIRED and not applying.calendars:
        return Gate()
    hours = [known[one] for one in applying.calendars if one in known]
    return gate_of(hours, now=now, needed=applying.needed, late=late)


def _spread(known: Collection[int]) -> dict[int, int]:
    """Return for how many seconds starts are spread, by calendar; of those that do."""
    rows = Calendar.objects.filter(id__in=known, spread_seconds__gt=0)
    return dict(rows.values_list("id", "spread_seconds"))


def _late(run_id: UUID, calendars: Sequence[int], spread: dict[int, int]) -> timedelta:
    """Return a run's place in the spread of its calendars: the same one each time it is asked."""
    most = max((spread[one] for one in calendars if one in spread), default=0)
    # Ids of one submit are counted up: multiplied by this, they lie evenly (Fibonacci hashing).
    place = (run_id.int * 0x9E37_79B9_7F4A_7C15 & 2**64 - 1) >> 32
    return timedelta(seconds=most * place / 2**32)


def calendars_of(
    owner_id: int, *, job_id: int | None, target_ids: Collection[int | None]
) -> dict[int | None, tuple[int, ...]]:
    """Return the ids of the calendars that apply, in order, by target (None: without one)."""
    rows = sql.query(_CALENDARS_OF, [owner_id, job_id, list(target_ids)])
    return {row["target"]: tuple(row["ids"]) for row in rows}


def gate(run_ids: Sequence[UUID], *, cause: str) -> int:
    """Queue these runs if they may start now, and hold them if not; return how many are queued.

    In the caller's transaction; what does not wait is left alone. Hints follow its commit.
    """
    rows = sql.run("runs/select_gated", {"ids": list(run_ids)})
    if not rows:
        return 0
    asked = [Applying(tuple(row["calendars"]), row["needed"], row["window_policy"]) for row in rows]
    # One moment for all: what opens between two of them would be decided twice.
    now = rows[-1]["now"]
    found = gates(asked, now=now, ids=[row["id"] for row in rows])
    moved = write_gates(
        [
            (
                row["id"],
                *times(gate, now=now, needed=row["needed"]),
                cause if gate.is_open else why_held(gate),
            )
            for row, gate in zip(rows, found, strict=True)
        ]
    )
    _tell(moved)
    return sum(row["state"] == State.QUEUED for row in moved)


def times(
    gate: Gate, *, now: datetime, needed: timedelta
) -> tuple[datetime | None, datetime | None]:
    """Return when a run is looked at next (None: it is queued), and until when it may start.

    When an opening begins for many, the shortest come first, for most of them fit: a microsecond
    earlier for each second that they are shorter.
    """
    if gate.is_open:
        return None, gate.not_after
    return (gate.opens_at or now + AGAIN) + needed / 1_000_000, None


def why_held(gate: Gate) -> str:
    return "window closed" if gate.opens_at else "no window within a year"


def _tell(moved: Sequence[dict[str, Any]]) -> None:
    """Have the hints of what is held now, or may start later than they say, taken back."""
    withdraw_on_commit(
        [
            (row["id"], row["token"], row["queue"])
            for row in moved
            if row["before"] == State.QUEUED and (row["state"] != State.QUEUED or row["is_new"])
        ]
    )
    publish_on_commit([row["id"] for row in moved if row["is_new"]])


@alone
def gate_changed(watch: Watch) -> int:
    """Gate again what waits of owners whose calendars have changed; return how many runs.

    Active runs of these owners were closed before (`Watch.look_now`). A call works for a second and
    ends with the chunk that it is at; the next promotion goes on from there. Owners take turns, a
    chunk each, in a random order: an owner with many runs, or many changes, does not keep others
    waiting. A call that meets another one returns at once.
    """
    until = time.monotonic() + GATING_SECONDS
    for owner_id, version in watch.closed.items():
        sql.query(_BEGIN, [version, UUID(int=0), owner_id, version])
    turns = deque((row["id"], row["gated_to"]) for row in sql.query(_BEGUN))
    total = 0
    while turns:
        owner_id, last = turns.popleft()
        count, last = _gate_chunk(owner_id, last)
        total += count
        if last is not None:
            turns.append((owner_id, last))
        if time.monotonic() >= until:
            break
        watch.look()
    return total


def _gate_chunk(owner_id: int, last: UUID) -> tuple[int, UUID | None]:
    """Gate the next chunk of what waits of an owner; return how many runs, and the last of them.

    None in place of the last one when the owner is done. A chunk that a crash parts from its mark
    is gated once more, which is harmless.
    """
    rows = sql.query(_WAITING_OF, [owner_id, last, CHUNK])
    if rows:
        with transaction.atomic():
            gate([row["id"] for row in rows], cause="calendar changed")
    if len(rows) < CHUNK:
        sql.query(_DONE, [owner_id])
        return len(rows), None
    last = rows[-1]["id"]
    sql.query(_MARK, [last, owner_id])
    return len(rows), last
