"""Jobs with an interval in seconds: each has a PeriodicTask of django-celery-beat.

A verb that writes such jobs syncs them right after its commit. Other changes, such as by the ORM,
raw SQL or an edited PeriodicTask, are found by the comparison in `fairshift.system.settle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from django.db import connection, transaction
from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

from jobs.core import sql
from jobs.core.conf import setting

BATCH: Final = 10_000
"""Most PeriodicTasks of one transaction."""
LAST: Final = 9
"""The last of Redis's priority lists: ticks come first."""
_ALONE: Final = "SELECT pg_advisory_xact_lock(1723, 0)"
_MISSING: Final = """
SELECT count(*) FROM jobs_job AS j
WHERE j.schedule = 'seconds' AND j.enabled AND j.interval_seconds > 0
  AND (j.end_at IS NULL OR j.end_at > clock_timestamp())
  AND j.changed_at < clock_timestamp() - interval '30 seconds'
  AND NOT EXISTS (SELECT FROM django_celery_beat_periodictask AS t
                  WHERE t.name = 'fairshift job ' || j.id)
"""
# A job that was just committed, by the ORM for example, gets its own within a few seconds.
_KEPT: Final = {"id", "name", "description", "last_run_at", "total_run_count"}
"""Fields of an existing PeriodicTask that a sync does not write."""


def sync_after_commit(job_ids: Iterable[int]) -> None:
    """Sync these jobs' PeriodicTasks after the commit. A failure is logged, and repaired later."""
    ids = list(job_ids)
    transaction.on_commit(lambda: _sync(ids), robust=True)


def sync_periodic_tasks() -> list[int]:
    """Create, change and delete PeriodicTasks that differ from their jobs; return the jobs' ids."""
    return _sync([row["id"] for row in _differing(None)])


def count_missing() -> int:
    """Return how many jobs have no PeriodicTask although they should; late by a sync at most."""
    [row] = sql.query(_MISSING)
    return int(row["count"])


def _sync(job_ids: Sequence[int]) -> list[int]:
    synced: list[int] = []
    for start in range(0, len(job_ids), BATCH):
        with transaction.atomic():
            sql.bound_waits()
            # Compared under the lock: otherwise an older comparison could undo a newer sync.
            sql.query(_ALONE)
            rows = _differing(job_ids[start : start + BATCH])
            if rows:
                _write(rows)
        synced += [row["id"] for row in rows]
    return synced


def _differing(job_ids: Sequence[int] | None) -> list[dict[str, Any]]:
    ids = None if job_ids is None else sql.array(job_ids)
    return sql.run("definitions/differing_periodic_tasks", {"ids": ids})


def _write(rows: Collection[dict[str, Any]]) -> None:
    wanted = [row for row in rows if row["interval_seconds"] is not None]
    gone = [_name(row) for row in rows if row["interval_seconds"] is None]
    intervals = {every: interval(every) for every in {row["interval_seconds"] for row in wanted}}
    queue = setting("SYSTEM_QUEUE")
    fields = {field.name for field in PeriodicTask._meta.concrete_fields}
    PeriodicTask.objects.bulk_create(
        [
            PeriodicTask(
                name=_name(row),
                task="fairshift.system.fire",
                args=f"[{row['id']}]",
                queue=queue,
                priority=LAST,
                interval=intervals[row["interval_seconds"]],
                start_time=row["start_at"],
                expires=row["end_at"],
                enabled=row["enabled"],
                description="Follows the job: change that.",
            )
            for row in wanted
        ],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=fields - _KEPT,
    )
    # Not delete(), whose signal updates the row of PeriodicTasks each time.
    PeriodicTask.objects.filter(name__in=gone)._raw_delete(connection.alias)
    PeriodicTasks.update_changed()


def _name(row: dict[str, Any]) -> str:
    return f"fairshift job {row['id']}"


def interval(seconds: int) -> IntervalSchedule:
    """Return the oldest row of an interval, or a new one."""
    wanted = {"every": seconds, "period": IntervalSchedule.SECONDS}
    rows = IntervalSchedule.objects.filter(**wanted).order_by("id")
    return rows.first() or IntervalSchedule.objects.create(**wanted)
