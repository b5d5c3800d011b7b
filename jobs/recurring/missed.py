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
    if missed:
        sql.run(
            "recurring/record_missed",
            {
                "job_ids": [job_id for job_id, _ in missed],
                "first_ats": [each.first_at for _, each in missed],
                "last_ats": [each.last_at for _, each in missed],
                "counts": [each.count for _, each in missed],
                "reasons": [str(each.reason) for _, each in missed],
            },
        )


def missed_spans_of(
    job_ids: Sequence[int], *, start: datetime, end: datetime
) -> dict[int, list[tuple[datetime, datetime]]]:
    """Return the spans (both ends included) that are recorded already, by job."""
    found: dict[int, list[tuple[datetime, datetime]]] = defaultdict(list)
    for row in sql.run("recurring/select_missed", {"job_ids": job_ids, "start": start, "end": end}):
        found[row["job_id"]].append((row["first_at"], row["last_at"]))
    return found
