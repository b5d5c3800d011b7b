"""Lists of jobs that need attention: late, failing, broken. Limited, and found by index."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from django.db.models import QuerySet
from django.db.models.functions import Now

from jobs.core import sql
from jobs.core.counting import within
from jobs.models import Cursor, Tick
from jobs.schedules import Schedule, ScheduleError, checked, cron_minutes, moment_of, slot_of

HEALTHS: Final = ("late", "failing", "paused", "broken")
MOST: Final = 500
"""Jobs in a list at most: more of them usually have one cause."""
LATE_SLOTS: Final = 120
"""Half-seconds after which a due time that was not triggered is late."""
FIRST_PIECE: Final = 10
"""Slots."""
SPANS: Final = 20
PAIRS: Final = 10_000
FAILED_RUNS: Final = 2_000
MILLISECONDS: Final = 250
RECOVERED_MILLISECONDS: Final = 1_000
LATE_MILLISECONDS: Final = 150
"""For all pieces together: in an outage the first ones show enough."""

Owners = Collection[int] | None
"""Keys of owners; None: all."""
Pairs = list[tuple[str, str]]
"""Cron expressions, each with its zone."""


@dataclass(frozen=True, slots=True)
class LateSpan:
    """A span of slots that should have been triggered, for the jobs with ids above `after_job`.

    `job` is the key of a single job that another transaction has locked.
    """

    first_slot: int
    end_slot: int
    after_job: int = 0
    job: int | None = None


@dataclass(frozen=True, slots=True)
class JobKeys:
    """Keys of jobs; not complete when a time limit or a row limit was reached."""

    keys: frozenset[int] = frozenset()
    is_complete: bool = True

    def __or__(self, other: JobKeys) -> JobKeys:
        return JobKeys(self.keys | other.keys, self.is_complete and other.is_complete)


def by_health(
    rows: QuerySet[Any], health: str, owners: Owners, *, now: datetime
) -> tuple[QuerySet[Any], bool]:
    """Narrow jobs of these owners to one of HEALTHS; say also whether that is known to be all."""
    if health == "paused":
        return rows.filter(paused_until__gt=Now()), True
    if health == "late":
        found = late_jobs(owners, now=now)
    else:
        found = failing_jobs(owners) if health == "failing" else broken_jobs(owners)
    return rows.filter(pk__in=sorted(found.keys)[:MOST]), found.is_complete


def late_spans(*, now: datetime) -> list[LateSpan]:
    """Return the late spans, oldest first: with an open tick, or not handed out at all."""
    last = slot_of(now) - LATE_SLOTS
    ticks = Tick.objects.filter(done_at__isnull=True, first_slot__lt=last).order_by("id")[:SPANS]
    spans = []
    for tick in ticks:
        job = tick.after_job + 1 if tick.kind == Tick.Kind.HELD else None
        spans.append(LateSpan(tick.first_slot, min(tick.end_slot, last), tick.after_job, job))
    cursor = Cursor.objects.order_by("pk").first()
    if cursor is not None and cursor.slot < last:
        spans.append(LateSpan(cursor.slot, last))
    return spans


def late_jobs(owners: Owners, *, now: datetime) -> JobKeys:
    """Return jobs that were due more than 60 s ago and have not been triggered."""
    spans = late_spans(now=now)
    if not spans:
        return JobKeys()
    until = time.monotonic() + LATE_MILLISECONDS / 1000
    pairs, is_complete = _pairs(LATE_MILLISECONDS)
    locked = frozenset(span.job for span in spans if span.job is not None)
    found = JobKeys(locked, is_complete=is_complete)
    for piece in (piece for span in spans if span.job is None for piece in _pieces(span)):
        found |= _late_in(piece, pairs, owners, until=until)
        if len(found.keys) > MOST or time.monotonic() > until:
            return JobKeys(found.keys, is_complete=False)
    return found


def _late_in(span: LateSpan, pairs: Pairs, owners: Owners, *, until: float) -> JobKeys:
    limits = {
        "first_slot": span.first_slot,
        "end_slot": span.end_slot,
        "after_job": span.after_job,
        "owners": _array(owners),
    }
    found = _ids("recurring/late_jobs", limits, milliseconds=_left(until))
    start, end = moment_of(span.first_slot), moment_of(span.end_slot)
    crons = [
        (cron, zone)
        for cron, zone in pairs
        if _is_readable(cron, zone) and cron_minutes(cron, zone, start=start, end=end)
    ]
    if crons:
        due = sql.columns(crons, "crons", "zones")
        found |= _ids("recurring/late_cron_jobs", limits | due, milliseconds=_left(until))
    return found


def _left(until: float) -> int:
    return max(1, round(1000 * (until - time.monotonic())))


def _pieces(span: LateSpan) -> Iterator[LateSpan]:
    """Cut a span into pieces, each twice as long as the one before."""
    first, length = span.first_slot, FIRST_PIECE
    while first < span.end_slot:
        yield LateSpan(first, min(first + length, span.end_slot), span.after_job)
        first, length = first + length, 2 * length


def failing_jobs(owners: Owners) -> JobKeys:
    """Return jobs whose last ended run failed, as far as the newest failed runs show."""
    rows = _ask("recurring/failing_jobs", {"owners": _array(owners), "most": FAILED_RUNS})
    keys = frozenset(row["job_id"] for row in rows or ())
    is_all = rows is not None and None not in keys and len(keys) <= MOST
    return JobKeys(keys - {None}, is_complete=is_all)


def recovered_jobs(job_ids: Collection[int]) -> frozenset[int]:
    """Return those of these jobs whose last ended run did not fail; none when time runs out.

    Unlike `failing_jobs` it reads the runs of each job, so the number of failed runs has no limit.
    """
    given = {"jobs": sorted(job_ids)}
    rows = _ask("recurring/recovered_jobs", given, milliseconds=RECOVERED_MILLISECONDS)
    return frozenset(row["job_id"] for row in rows or ())


def broken_jobs(owners: Owners) -> JobKeys:
    """Return enabled jobs whose schedule cannot be followed."""
    pairs, is_complete = _pairs(MILLISECONDS)
    broken = [pair for pair in pairs if not _is_readable(*pair)]
    given = {"owners": _array(owners), **sql.columns(broken, "crons", "zones")}
    return JobKeys(is_complete=is_complete) | _ids("recurring/broken_jobs", given)


def _pairs(milliseconds: int) -> tuple[Pairs, bool]:
    """Return the cron expressions of enabled jobs, and whether these are all."""
    rows = _ask("recurring/distinct_crons", {"most": PAIRS + 1}, milliseconds=milliseconds)
    found = [(row["cron"], row["zone"]) for row in rows or ()]
    return found[:PAIRS], rows is not None and len(found) <= PAIRS


@lru_cache(maxsize=PAIRS)
def _is_readable(cron: str, zone: str) -> bool:
    try:
        checked(Schedule(kind="cron", cron=cron, zone=zone))
    except ScheduleError:
        return False
    return True


def _ids(name: str, parameters: dict[str, Any], *, milliseconds: int = MILLISECONDS) -> JobKeys:
    """Ask for one row more than are shown, to know whether there are more."""
    rows = _ask(name, parameters | {"most": MOST + 1}, milliseconds=milliseconds)
    keys = frozenset(row["id"] for row in rows or ())
    return JobKeys(keys, is_complete=rows is not None and len(rows) <= MOST)


def _ask(
    name: str, parameters: dict[str, Any], *, milliseconds: int = MILLISECONDS
) -> list[dict[str, Any]] | None:
    return within(milliseconds, partial(sql.run, name, parameters))


def _array(owners: Owners) -> list[int] | None:
    return None if owners is None else sorted(owners)
