"""Placement: the id, the phase and the shard of a job; the last two until its interval changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobs import schedules
from jobs.core import crypto, sql
from jobs.models import Job, ScheduleKind

SEQUENCES: Final = 64

JobKey = tuple[int, str]
"""The id of a job's owner, and the job's key."""


def prepare(job: Job, *, payload: bytes) -> None:
    """Give a job that is about to be saved its arguments, its phase and its shard."""
    if job.pk is None and crypto.ring() is not None:
        # Encryption binds the arguments to the id, so the id is needed before the insert.
        [job.pk] = new_job_ids(1)
    sealed = crypto.seal_of_job(payload, place=job.place)
    job.payload, job.payload_key = sealed.data, sealed.key
    names = ("schedule", "interval_minutes", "smooth")
    row: dict[str, Any] = {name: getattr(job, name) for name in names}
    rows = {(job.owner_id, job.key): row}
    assign_placement(rows, found_jobs(rows))
    job.phase, job.shard = row.get("phase"), row.get("shard")


def found_jobs(job_keys: Iterable[JobKey]) -> dict[JobKey, dict[str, Any]]:
    """Return the tasks, schedules and placements of the jobs that exist."""
    found = sql.query(
        "SELECT j.id, j.owner_id, j.key, j.task, j.schedule, j.interval_minutes, j.phase, j.shard "
        "FROM jobs_job j JOIN unnest(%(owners)s::bigint[], %(keys)s::text[]) AS p(owner_id, key) "
        "ON j.owner_id = p.owner_id AND j.key = p.key",
        sql.columns(job_keys, "owners", "keys"),
    )
    return {(row["owner_id"], row["key"]): row for row in found}


def new_job_ids(count: int) -> list[int]:
    """Return ids for new jobs whose arguments are encrypted: these are bound to the job's id."""
    rows = sql.query(
        "SELECT nextval(pg_get_serial_sequence('jobs_job', 'id')) AS id "
        "FROM generate_series(1, %s)",
        [count],
    )
    return [row["id"] for row in rows]


def assign_placement(rows: Mapping[JobKey, dict[str, Any]], found: Mapping[JobKey, Any]) -> None:
    """Give each job that needs them its present phase and shard, or the next free ones."""
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


def move_to(places: Mapping[JobKey, tuple[int, int]]) -> None:
    """Give jobs of an interval in minutes these phases and shards."""
    rows = [(*job_key, *place) for job_key, place in places.items()]
    sql.query(
        "UPDATE jobs_job j SET phase = p.phase, shard = p.shard FROM unnest(%(owners)s::bigint[], "
        "%(keys)s::text[], %(phases)s::int[], %(shards)s::int[]) AS p(owner_id, key, phase, shard) "
        "WHERE j.owner_id = p.owner_id AND j.key = p.key AND j.schedule = 'interval'",
        sql.columns(rows, "owners", "keys", "phases", "shards"),
    )


def _place_minutes(row: Mapping[str, Any]) -> int | None:
    """Return the interval in minutes within which a job is placed; None without placement."""
    if row["schedule"] == ScheduleKind.INTERVAL:
        return int(row["interval_minutes"])
    return 1 if row["smooth"] else None


def _numbers(sequence: int, count: int) -> list[int]:
    rows = sql.query(
        "SELECT nextval(%s::regclass) AS n FROM generate_series(1, %s)",
        [f"jobs_phase_{sequence}", count],
    )
    return [row["n"] for row in rows]
