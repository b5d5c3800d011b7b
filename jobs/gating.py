"""Gating: whether what waits may be queued now, by the calendars that apply, and when else.

For order and for readers: what may start is decided once more by each admission, on the row and on
PostgreSQL's clock. A run that is held is looked at again when its calendars open, or change.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from jobs import agreed, closing, database
from jobs.database import alone
from jobs.dispatch import publish_on_commit, withdraw_on_commit
from jobs.models import Calendar, WindowPolicy
from jobs.recording import write_gates
from jobs.states import State
from jobs.windows import Calendar as Hours
from jobs.windows import Gate, gate_of
from jobs.windows.gate import OPEN

CHUNK: Final = 1_000
AGAIN: Final = timedelta(hours=1)
"""A run that no calendar lets start within a year is looked at again so often."""
LOOK_SECONDS: Final = 1.0
"""Seconds between two looks for calendars that changed, while runs are gated."""

_CHANGED_OWNERS: Final = """
SELECT id, calendar_version AS version FROM jobs_owner
WHERE gated_version < calendar_version ORDER BY id
"""
_WAITING_OF: Final = """
SELECT id FROM jobs_run
WHERE owner_id = %s AND state IN ('held', 'queued') AND id > %s ORDER BY id LIMIT %s
"""
_GATED: Final = "UPDATE jobs_owner SET gated_version = %s WHERE id = %s AND gated_version < %s"
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
    rows = database.query(_CALENDARS_OF, [owner_id, job_id, list(target_ids)])
    return {row["target"]: tuple(row["ids"]) for row in rows}


def gate(run_ids: Sequence[UUID], *, cause: str) -> int:
    """Queue these runs if they may start now, and hold them if not; return how many are queued.

    In the caller's transaction; what does not wait is left alone. Hints follow its commit.
    """
    rows = database.run("waiting_runs", {"ids": list(run_ids)})
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
def gate_changed() -> int:
    """Gate again what waits of owners whose calendars have changed; return how many runs.

    What runs is told first when it is to stop (`jobs/closing.py`), also of owners whose calendars
    change while many runs are gated. Repeating it is harmless: an owner is done when all of its
    runs are. A call that meets another one returns at once, and the next promotion looks again.
    """
    total = 0
    closed: dict[int, int] = {}
    while owners := _close_changed(closed):
        looked_at = time.monotonic()
        for owner_id, version in owners.items():
            for count in _gate_all_of(owner_id):
                total += count
                if time.monotonic() - looked_at > LOOK_SECONDS:
                    _close_changed(closed)
                    looked_at = time.monotonic()
            database.query(_GATED, [version, owner_id, version])
    return total


def _close_changed(closed: dict[int, int]) -> dict[int, int]:
    """Have active runs of owners whose calendars changed stop; return the owners' versions.

    `closed` has the version of each owner that has been looked at, and is brought up to date.
    """
    changed = {row["id"]: row["version"] for row in database.query(_CHANGED_OWNERS)}
    for owner_id, version in changed.items():
        if closed.get(owner_id) != version:
            closing.close_runs(owner_id)
            closed[owner_id] = version
    return changed


def _gate_all_of(owner_id: int) -> Iterator[int]:
    """Gate what waits of an owner, chunk by chunk; yield how many runs each has."""
    last = UUID(int=0)
    while rows := database.query(_WAITING_OF, [owner_id, last, CHUNK]):
        last = rows[-1]["id"]
        with transaction.atomic():
            gate([row["id"] for row in rows], cause="calendar changed")
        yield len(rows)
