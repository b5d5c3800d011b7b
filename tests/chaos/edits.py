"""Edits of jobs in a long proof: each in a transaction, with the moments around its commit."""

import time
from datetime import datetime
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction

from tests.judge.log import SubmitLog

# All slots before this moment are done, by a tick or a reading that saw the present job.
SETTLED = """
SELECT
    to_timestamp(
        least(c.slot, (SELECT min(first_slot) FROM jobs_tick WHERE done_at IS NULL)) / 2.0),
    coalesce(pg_visible_in_snapshot(
        (SELECT changed_xid FROM jobs_job WHERE key = %s), c.again_seen), true)
FROM jobs_cursor AS c
"""
RULE = """
SELECT schedule, interval_minutes, phase, shard, cron, zone, once_at, start_at, end_at
FROM jobs_job WHERE key = %s
"""


def upsert(log: SubmitLog, *, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """Upsert these jobs in one call."""
    from jobs import upsert_jobs

    upsert_jobs("acme", jobs)
    return {}


def edit(
    log: SubmitLog,
    *,
    key: str,
    mark: str,
    open_seconds: float,
    job: dict[str, Any] | None = None,
    paused_until: str | None = None,
) -> dict[str, Any]:
    """Write a job, or pause it until then (without a time: resume it), and mark it.

    Commits after `open_seconds`. The answer has the moments of it, as far as it came.
    """
    from jobs import upsert_jobs
    from jobs.models import Job
    from jobs.recurring.pause import pause_jobs

    facts: dict[str, Any] = {}
    try:
        with transaction.atomic():
            settled_at, is_read = _row(SETTLED, key)
            facts |= {"settled": _text(settled_at), "is_read": is_read, "before": _now()}
            if job is not None:
                upsert_jobs("acme", [{**job, "labels": {"mark": mark}}])
            else:
                until = datetime.fromisoformat(paused_until) if paused_until else None
                jobs = Job.objects.filter(key=key)
                pause_jobs(list(jobs.values_list("id", flat=True)), until=until)
                jobs.update(labels={"mark": mark})
            facts["after"] = _now()
            facts["rule"] = [_text(value) for value in _row(RULE, key)]
            time.sleep(open_seconds)
        facts["committed"] = _now()
    except (DatabaseError, InterfaceError) as error:
        # Whether it was committed, the mark says.
        facts["unknown"] = type(error).__name__
    return facts


def _now() -> str:
    return str(_text(_row("SELECT clock_timestamp()")[0]))


def _row(query: str, *parameters: Any) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return tuple(cursor.fetchone())


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
