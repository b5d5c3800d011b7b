"""The records of due times that were not run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from jobs.core import sql
from jobs.schedules.misfire import MissedSpan

JobMissed = tuple[int, MissedSpan]
"""A job and what it missed."""


def record_missed(missed: Sequence[JobMissed]) -> None:
    """Record spans of jobs; repeating it changes nothing."""
    rows = [
        (job_id, span.first_at, span.last_at, span.count, str(span.reason))
        for job_id, span in missed
    ]
    if rows:
        names = ("job_ids", "first_ats", "last_ats", "counts", "reasons")
        sql.run("recurring/record_missed", sql.columns(rows, *names))


def missed_spans_of(
    job_ids: Sequence[int], *, start: datetime, end: datetime
) -> dict[int, list[tuple[datetime, datetime]]]:
    """Return the spans (both ends included) that are recorded already, by job."""
    found: dict[int, list[tuple[datetime, datetime]]] = defaultdict(list)
    for row in sql.run("recurring/select_missed", {"job_ids": job_ids, "start": start, "end": end}):
        found[row["job_id"]].append((row["first_at"], row["last_at"]))
    return found
