"""Jobs whose runs leave no history, their hints, and what the database has of them."""

from datetime import UTC, datetime
from typing import Any

from django.db import connection

from fleet import AdmissionRequest, Hint
from jobs.catalog.encoding import encode_body
from jobs.core.ids import scheduled_id
from jobs.models import Job, Owner

_WRITES = """
SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)
FROM pg_stat_user_tables WHERE relname LIKE 'jobs\\_%' AND relname <> 'jobs_worker'
"""


def job_without_history(owner: Owner, **fields: Any) -> Job:
    """Return a job that adds 1 and 2, with these fields besides."""
    arguments = fields.pop("arguments", {"x": 1, "y": 2})
    payload = encode_body([], arguments, max_bytes=10_000)
    named = {"key": "nightly", "task": "tests.add", "history_policy": "none", **fields}
    return Job.objects.create(owner=owner, payload=payload, **named)


def due_hint(job: Job, due_at: datetime | None = None, **facts: Any) -> Hint:
    """Return the hint of a job's run that was due then, or now."""
    run_id = scheduled_id(job.pk, due_at or datetime.now(UTC))
    named = {"queue": "jobs", "owner": job.owner.slug, "job": job.pk, **facts}
    return Hint(**{"run_id": str(run_id), "task": job.task, **named})


def admission_request_of(hint: Hint) -> AdmissionRequest:
    """Return what a worker asks that holds this hint."""
    whose = (hint.job, hint.owner, hint.submission)
    return AdmissionRequest(hint.run_id, hint.task, *whose, hint.attempt, hint.token)


def written_count() -> int:
    """Return how many rows of ours were ever written, but for the workers' heartbeats.

    Of other connections, those that are closed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(_WRITES)
        return int(cursor.fetchone()[0])
