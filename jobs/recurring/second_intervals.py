"""Jobs with an interval in seconds: what celery-beat sends for their PeriodicTasks comes here."""

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
