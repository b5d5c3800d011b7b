"""Jobs with an interval in seconds: celery-beat sends their PeriodicTasks, which trigger them."""

from __future__ import annotations

from django.db import transaction

from jobs.core import sql
from jobs.recurring.overlap import apply_overlap
from jobs.recurring.trigger import make_runs_apart, send_hints


def trigger_second_interval(job_id: int) -> int:
    """Trigger a job's due time that has just passed; return how many runs that made.

    Due times are whole multiples of the interval since 1970: each has one run, however often and
    late celery-beat sends. At most one due time is caught up with; a longer outage of celery-beat
    is not recorded. Does nothing for a job that is off, paused or deleted, nor for a locked one,
    which the next send catches up with. Raises as `send_hints` does.
    """
    with transaction.atomic():
        sql.bound_waits()
        pairs = [(job_id, row["slot"]) for row in sql.run("recurring/due_seconds", {"id": job_id})]
        made = make_runs_apart(apply_overlap(pairs).chosen)
    return made + send_hints(pairs)
