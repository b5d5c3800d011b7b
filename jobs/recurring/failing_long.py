"""Jobs that have been failing for a while, as an operator is told of them; and since when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from jobs.core import sql
from jobs.core.counting import within
from jobs.core.ids import first_id_of
from jobs.core.states import State
from jobs.models import Job, Run
from jobs.recurring.health import MILLISECONDS, Owners, failing_jobs

LONG: Final = timedelta(hours=1)
LOOKED_AT: Final = 100
"""Failing jobs that are looked at, the ones with the lowest ids."""


def failing_long(owners: Owners, *, now: datetime) -> Sequence[Job]:
    """Return jobs whose runs have failed for LONG at least: without a success since then."""
    keys = sorted(failing_jobs(owners).keys)[:LOOKED_AT]
    if not keys:
        return []
    given = {"jobs": keys, "since": first_id_of(now - LONG)}
    rows = within(MILLISECONDS, partial(sql.run, "recurring/failing_long", given))
    found = [row["job_id"] for row in rows or ()]
    return list(Job.objects.filter(pk__in=found).select_related("owner").order_by("pk"))


def failing_since(job: Job) -> Run | None:
    """Return the first run of a job that failed after its last success; None: not found in time.

    Ask only about a job whose last run failed.
    """
    return within(MILLISECONDS, partial(_first_failed, job))


def _first_failed(job: Job) -> Run | None:
    runs = Run.objects.filter(job=job).only("id", "due_at", "created_at")
    success = runs.filter(state=State.SUCCEEDED).order_by("-id").first()
    failed = runs.filter(state=State.FAILED).order_by("id")
    return failed.first() if success is None else failed.filter(id__gt=success.id).first()
