"""Which jobs need somebody: late, failing, broken. At most some, each found by index."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from jobs import database
from jobs.admin.counting import within
from jobs.models import Cursor, Tick
from jobs.schedules import Schedule, ScheduleError, checked, cron_minutes, moment_of, slot_of

MOST: Final = 500
"""A list of what needs somebody is no longer: who has more has one cause."""
LATE_SLOTS: Final = 120
"""Half seconds after which what is due, and has not been triggered, is late."""
FIRST_PIECE: Final = 10
"""Slots."""
SPANS: Final = 20
PAIRS: Final = 10_000
FAILED_RUNS: Final = 2_000
MILLISECONDS: Final = 250
LATE_MILLISECONDS: Final = 150
"""For all pieces together: in an outage the first ones tell enough."""

Owners = Collection[int] | None
"""Keys of owners; None: all."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A span of slots that no tick has triggered, and should have; of the jobs after one."""

    first_slot: int
    end_slot: int
    after_job: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Keys of jobs; not complete when the database did not find the rest in time."""

    keys: frozenset[int] = frozenset()
    is_complete: bool = True

    def __or__(self, other: Found) -> Found:
        return Found(self.keys | other.keys, self.is_complete and other.is_complete)


def owed(*, now: datetime) -> list[Owed]:
    """Return the spans that are late: with an open tick, or not handed out at all; oldest first.

    Empty in a healthy installation, so that asking costs two look-ups.
    """
    last = slot_of(now) - LATE_SLOTS
    ticks = Tick.objects.filter(done_at__isnull=True, first_slot__lt=last).order_by("id")[:SPANS]
    spans = [Owed(t.first_slot, min(t.end_slot, last), t.after_job) for t in ticks]
    cursor = Cursor.objects.order_by("pk").first()
    if cursor is not None and cursor.slot < last:
        spans.append(Owed(cursor.slot, last))
    return spans


def late_jobs(owners: Owners, *, now: datetime) -> Found:
    """Return jobs that were due more than 60 s ago and have not been triggered."""
    found = Found()
    until = time.monotonic() + LATE_MILLISECONDS / 1000
    for piece in (piece for span in owed(now=now) for piece in _pieces(span)):
        limits = {
            "first_slot": piece.first_slot,
            "end_slot": piece.end_slot,
            "after_job": piece.after_job,
            "owners": _array(owners),
            "most": MOST,
        }
        left = max(1, round(1000 * (until - time.monotonic())))
        found |= _ids("late_jobs", limits, milliseconds=left)
        crons, zones = _due_pairs(piece)
        if crons:
            pairs = {"crons": crons, "zones": zones}
            found |= _ids("late_cron_jobs", limits | pairs, milliseconds=left)
        if len(found.keys) >= MOST:
            break
        if time.monotonic() > until:
            return Found(found.keys, is_complete=False)
    return found


def _pieces(span: Owed) -> Iterator[Owed]:
    """Cut a span into pieces, each longer than the one before: the first ones tell enough."""
    first, length = span.first_slot, FIRST_PIECE
    while first < span.end_slot:
        yield Owed(first, min(first + length, span.end_slot), span.after_job)
        first, length = first + length, 2 * length


def failing_jobs(owners: Owners) -> Found:
    """Return jobs whose newest run that ended has failed, of the newest failed runs."""
    return _ids("failing_jobs", {"owners": _array(owners), "most": FAILED_RUNS}, column="job_id")


def broken_jobs(owners: Owners) -> Found:
    """Return enabled jobs whose schedule cannot be followed."""
    bad = [(cron, zone) for cron, zone in _pairs() if not _is_readable(cron, zone)]
    crons, zones = [cron for cron, _ in bad], [zone for _, zone in bad]
    return _ids(
        "broken_jobs", {"owners": _array(owners), "crons": crons, "zones": zones, "most": MOST}
    )


def _due_pairs(span: Owed) -> tuple[list[str], list[str]]:
    start, end = moment_of(span.first_slot), moment_of(span.end_slot)
    due = [
        (cron, zone)
        for cron, zone in _pairs()
        if _is_readable(cron, zone) and cron_minutes(cron, zone, start=start, end=end)
    ]
    return [cron for cron, _ in due], [zone for _, zone in due]


def _pairs() -> list[tuple[str, str]]:
    return [(row["cron"], row["zone"]) for row in database.run("cron_pairs", {"most": PAIRS})]


@lru_cache(maxsize=PAIRS)
def _is_readable(cron: str, zone: str) -> bool:
    try:
        checked(Schedule(kind="cron", cron=cron, zone=zone))
    except ScheduleError:
        return False
    return True


def _ids(
    name: str, parameters: dict[str, Any], *, column: str = "id", milliseconds: int = MILLISECONDS
) -> Found:
    rows = within(milliseconds, partial(database.run, name, parameters))
    return Found(frozenset(row[column] for row in rows or ()), is_complete=rows is not None)


def _array(owners: Owners) -> list[int] | None:
    return None if owners is None else sorted(owners)
