"""Report to Celery the ends of runs that no worker reports, or errbacks and chords would wait.

Such runs are cancelled, expire, cannot be read, or lose their last attempt with the worker.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from billiard.exceptions import WorkerLostError
from celery import current_app
from celery.app.task import Context
from celery.exceptions import TaskError
from celery.states import READY_STATES
from django.db import connection

from fleet import HEADER, acting_as, may_log
from jobs.catalog.retry_policy import LOST
from jobs.core import log_events, sql
from jobs.core.apart import apart, in_savepoint, name_spoilt
from jobs.core.conf import setting
from jobs.core.crypto import read_message
from jobs.core.states import ENDED, State
from jobs.models import Owner, Run

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000

# From one lease after the end: until then, the process that moved the run may still notify Celery.
# Runs with only an errback are not found: whether it was called is stored nowhere.
_MISSED = """
SELECT r.id FROM jobs_run r
WHERE r.state IN ('failed', 'cancelled', 'expired')
  AND r.options <> '{}' AND r.options @> '{"ignore_result": false}'
  AND r.ended_at BETWEEN clock_timestamp() - interval '1 hour'
                     AND clock_timestamp() - make_interval(secs => %s)
  AND NOT EXISTS (
    SELECT FROM django_celery_results_taskresult t
    WHERE t.task_id = r.id::text AND t.status = ANY(%s))
ORDER BY r.ended_at LIMIT %s
"""


def notify_celery(run_ids: Sequence[UUID]) -> None:
    """Mark these ended runs in the result backend; call errbacks, count chord members.

    Runs without such options are skipped. Errbacks are called for failures only, as in Celery,
    perhaps twice. A stored final result stays. Call it after the commit; errors are only logged.
    """
    if not run_ids:
        return
    read = in_savepoint(_asked) if connection.in_atomic_block else _asked
    asked = [run for part in apart(run_ids, read, spoilt=_leave_out) for run in part]
    slugs = dict(
        Owner.objects.filter(id__in={run.owner_id for run in asked}).values_list("id", "slug")
    )
    for run in asked:
        whose = {"owner": slugs.get(run.owner_id), "submission": run.submission_id}
        try:
            with acting_as({HEADER: whose}):
                _notify(run)
        except Exception as error:
            # The sweep tries again every 5 s.
            if may_log(f"Celery and run {run.id}"):
                log_events.CELERY_NOT_NOTIFIED.log(logger, run_id=run.id, exc_info=error)


def _asked(run_ids: Sequence[UUID]) -> list[Run]:
    ended = Run.objects.filter(id__in=run_ids, state__in=ENDED)
    return list(ended.filter(options__has_key="ignore_result"))


def _leave_out(run_id: UUID, error: Exception) -> None:
    name_spoilt(logger, f"the end of run {run_id} for Celery", error)


def notify_missed() -> int:
    """Report the last hour's ends that Celery does not know, as after a crash; return how many."""
    rows = sql.query(_MISSED, [setting("LEASE_SECONDS"), list(READY_STATES), CHUNK])
    notify_celery([row["id"] for row in rows])
    return len(rows)


def _notify(run: Run) -> None:
    backend, task_id = current_app.backend, str(run.id)
    # Celery reads `delivery_info` before it sends an errback.
    facts = {"id": task_id, "task": run.task, "delivery_info": {}}
    request = Context({**facts, **run.options, **_embed(run)})
    is_kept = not run.options.get("ignore_result", True)
    is_new = is_kept and backend.get_state(task_id) not in READY_STATES
    if run.state == State.SUCCEEDED:
        # The worker has stored the value and called the links.
        backend.mark_as_done(task_id, None, request=request, store_result=False)
    elif run.state == State.FAILED:
        backend.mark_as_failure(task_id, _reason(run), request=request, store_result=is_new)
    else:
        backend.mark_as_revoked(task_id, reason=run.state, request=request, store_result=is_new)


def _reason(run: Run) -> Exception:
    if run.error_type == LOST:
        return WorkerLostError(run.error_text or "the worker was lost")
    return TaskError(run.error_text or run.error_type)


def _embed(run: Run) -> dict[str, Any]:
    """Return the callbacks of a run; empty if its payload is unreadable."""
    try:
        *_arguments, embed = read_message(run.payload, key=run.payload_key, place=run.place)
    except (LookupError, ValueError, TypeError) as error:
        log_events.CALLBACKS_UNREADABLE.log(logger, run_id=run.id, error=error)
        return {}
    return dict(embed)
