"""Jobs that recur, moments of a made-up clock, and ticks over them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.catalog.encoding import encode_body
from jobs.core import sql
from jobs.models import Job, Owner, Run, Tick
from jobs.schedules import slot_of
from tests.jobs.scenes import hinted

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""A Monday; a minute that is a multiple of 60."""
MINUTE = slot_of(NOON) // 120
OLD = NOON - timedelta(days=30)


def recurring(owner: Owner, key: str = "", **fields: Any) -> Job:
    """Return a job that adds 1 and 2 every minute, in its first slot, since a month before noon."""
    named = {
        "key": key or f"job-{Job.objects.count()}",
        "task": "tests.add",
        "payload": encode_body([], {"x": 1, "y": 2}, max_bytes=10_000),
        "effective_from": OLD,
        **fields,
    }
    if named.setdefault("schedule", "interval") == "interval":
        named = {"interval_minutes": 1, "phase": 0, "shard": 0, **named}
    job = Job.objects.create(owner=owner, **named)
    if job.paused_until:
        # Making it has begun its pause at the time of the database.
        Job.objects.filter(pk=job.pk).update(paused_from=OLD)
    return job


def at(minutes: float = 0, *, seconds: float = 0) -> datetime:
    """Return a moment so long after noon."""
    return NOON + timedelta(minutes=minutes, seconds=seconds)


def tick_of(start: datetime, end: datetime, **fields: Any) -> Tick:
    """Return the tick that a pulse would have made of the slots from start until end."""
    span = {"first_slot": slot_of(start), "end_slot": slot_of(end)}
    return Tick.objects.create(**span, sent_at=start, **fields)


def runs_of(job: Job) -> list[datetime]:
    """Return when the runs of a job were due, in that order."""
    return list(Run.objects.filter(job=job).order_by("due_at").values_list("due_at", flat=True))


def hinted_of(*jobs: Job) -> int:
    """Return how many hints of these jobs' runs wait, of those that have rows."""
    return Run.objects.filter(id__in=hinted(), job__in=jobs).count()


def written_raw(job: Job, **columns: Any) -> None:
    """Write columns of a job as nobody should: nothing is checked, and nothing counts as new."""
    names = ", ".join(f"{name} = %s" for name in columns)
    sql.query(f"UPDATE jobs_job SET {names} WHERE id = %s", [*columns.values(), job.id])
    # As it was: the schedule's change has set it to now.
    sql.query("UPDATE jobs_job SET effective_from = %s WHERE id = %s", [OLD, job.id])
