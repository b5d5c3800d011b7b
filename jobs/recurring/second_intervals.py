"""Jobs with an interval in seconds: PeriodicTasks of django-celery-beat, kept in step.

The table of jobs keeps each one's PeriodicTask `fairshift job <id>` by itself, in the transaction
that writes the job, at its end (jobs/migrations/sql/0005_second_intervals.sql). What celery-beat
sends comes here.
"""

from __future__ import annotations

from django.db import transaction

from jobs.core import sql
from jobs.recurring.overlap import apply_overlap
from jobs.recurring.trigger import make_runs, send_hints


def trigger_second_interval(job_id: int) -> int:
    """Trigger a job's due time that has just passed; return how many runs that made.

    Due times lie on a grid, whole multiples of the interval since 1970: however often and late
    celery-beat sends, each has one run. One run at most is caught up with; what a longer absence
    of celery-beat has missed is not recorded. Nothing for a job that is off, paused or gone, nor
    for one that somebody's transaction holds: the next send catches up. Raises BrokerUnavailable
    when the hint of a job without history may not be out.
    """
    with transaction.atomic():
        sql.bound_waits()
        pairs = [(job_id, row["slot"]) for row in sql.run("recurring/due_seconds", {"id": job_id})]
        made = make_runs(apply_overlap(pairs).chosen)
    return made + send_hints(pairs)


@transaction.atomic
def sync_periodic_tasks() -> list[int]:
    """Put PeriodicTasks back in step that somebody has changed; return the ids of their jobs."""
    sql.bound_waits()
    return [row["id"] for row in sql.run("recurring/sync_periodic_tasks", {})]
