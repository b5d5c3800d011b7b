"""Places: the phase and the shard that a job keeps for as long as its interval stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from jobs import schedules
from jobs.core import sql
from jobs.models import Job, ScheduleKind

SEQUENCES: Final = 64

JobKey = tuple[int, str]
"""By what a job is known: its owner's number and its own key."""


def place_of(job: Job) -> tuple[int | None, int | None]:
    """Return the phase and the shard that a job is to have when it is saved as it is."""
    row = {"schedule": job.schedule, "interval_minutes": job.interval_minutes}
    rows: dict[JobKey, dict[str, Any]] = {(job.owner_id, job.key): {**row, "smooth": job.smooth}}
    assign_placement(rows, found_jobs(rows))
    [placed] = rows.values()
    return placed.get("phase"), placed.get("shard")


def found_jobs(rows: Mapping[JobKey, Any]) -> dict[JobKey, dict[str, Any]]:
    """Return what is there already: its schedule, and where in time it stands."""
    owners, keys = [owner for owner, _ in rows], [key for _, key in rows]
    found = sql.query(
        "SELECT j.owner_id, j.key, j.schedule, j.interval_minutes, j.phase, j.shard "
        "FROM jobs_job j JOIN unnest(%s::bigint[], %s::text[]) AS p(owner_id, key) "
        "ON j.owner_id = p.owner_id AND j.key = p.key",
        [owners, keys],
    )
    return {(row["owner_id"], row["key"]): row for row in found}


def assign_placement(rows: Mapping[JobKey, dict[str, Any]], found: Mapping[JobKey, Any]) -> None:
    """Give a phase and a shard to each job that has one by its schedule: its own, or the next."""
    new: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for job_key, row in rows.items():
        if (minutes := _place_minutes(row)) is None:
            continue
        old = found.get(job_key)
        if (
            old is not None
            and old["interval_minutes"] == row["interval_minutes"]
            and None not in (old["phase"], old["shard"])
        ):
            row["phase"], row["shard"] = old["phase"], old["shard"]
        else:
            new[minutes].append(row)
    for minutes, unplaced in new.items():
        numbers = _numbers(minutes % SEQUENCES, len(unplaced))
        for row, number in zip(unplaced, numbers, strict=True):
            row["phase"], row["shard"] = schedules.place(number, interval_minutes=minutes)


def _place_minutes(row: Mapping[str, Any]) -> int | None:
    """Return the span in minutes within which a job has its place; None: it has none."""
    if row["schedule"] == ScheduleKind.INTERVAL:
        return int(row["interval_minutes"])
    return 1 if row["smooth"] else None


def _numbers(sequence: int, count: int) -> list[int]:
    rows = sql.query(
        "SELECT nextval(%s::regclass) AS n FROM generate_series(1, %s)",
        [f"jobs_phase_{sequence}", count],
    )
    return [row["n"] for row in rows]
