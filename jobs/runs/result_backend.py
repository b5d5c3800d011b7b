"""Celery's result backend for durable runs: a chord counts who has ended, each once.

An attempt may end twice for Celery: its process dies after the outcome was stored, and the run
is tried again. django-celery-results counts down with each word of an end, so that a chord's
counter would be used up before all members have ended, and its body never be called. And a
member that ignores its result, as all do by default here, would leave nothing to call it with.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from celery import current_app, states
from celery.app.task import Context
from celery.canvas import maybe_signature
from celery.result import GroupResult, ResultSet
from django.db import router, transaction
from django_celery_results.backends.database import DatabaseBackend, trigger_callback
from django_celery_results.models import ChordCounter, TaskResult

from fleet import Kind, Report
from fleet.worker.failures import failure
from jobs.catalog.encoding import encode_result
from jobs.core import sql
from jobs.core.conf import setting

logger = logging.getLogger(__name__)

STORED: Final = "stored outcome"
"""The cause of a move that follows what the result backend says of a lost attempt."""

_READY = """
SELECT count(*) FROM django_celery_results_taskresult WHERE task_id = ANY(%s) AND status = ANY(%s)
"""


class ResultBackend(DatabaseBackend):
    """django-celery-results' backend; a chord's body is called once, when all members have ended.

    Its results and tables are that package's own.
    """

    def on_chord_part_return(
        self,
        request: Any,
        state: Any,
        result: Any,
        **kwargs: Any,  # noqa: ARG002  Celery hands them over
    ) -> None:
        """Call the body if this was the last end that its chord waits for. Repeating is harmless.

        The end is stored first if it is not yet: the body wants the value of a member that
        ignores its result, and the errback its error.

        The counter says how many ends are still to come, at the least: each word of one lowers
        it, and when it is used up the ends that are stored are counted, and those that are
        missing are waited for anew. To count them with each end would cost the square of the
        chord's size. A process that dies between the deletion and the call loses the body.
        """
        if not request.id or not request.group:
            return
        if not _is_stored(request, state):
            self.store_result(request.id, result, state, request=request)
        with transaction.atomic(using=router.db_for_write(ChordCounter)):
            counter = (
                ChordCounter.objects.select_for_update().filter(group_id=request.group).first()
            )
            if counter is None:
                # Its body has been called: this is a second word of the same end.
                return
            header = counter.group_result(app=self.app)
            counter.count = max(0, counter.count - 1) or _missing_count(header)
            if counter.count:
                counter.save(update_fields=["count"])
                return
            counter.delete()
        body = maybe_signature(request.chord, app=self.app)
        trigger_callback(app=self.app, callback=body, group_result=header)


def as_stored(reports: Sequence[Report]) -> list[Report]:
    """Return reports of lost attempts, with the outcome that Celery has stored where it has one.

    The process died after its task had ended and before it could say so: to try it again would
    tell callers, errbacks and chords of a second end. Only runs that asked for a result have one.
    """
    if not reports:
        return []
    lost = {report.run_id: report for report in reports}
    final = (states.SUCCESS, states.FAILURE)
    for row in TaskResult.objects.filter(task_id__in=list(lost), status__in=final):
        try:
            lost[row.task_id] = _stored(lost[row.task_id], row)
        except Exception:
            # Whatever the stored value is: other runs are not to wait for this one.
            logger.exception("the stored outcome of run %s cannot be read", row.task_id)
    return [lost[report.run_id] for report in reports]


def forget(run_ids: Sequence[Any]) -> None:
    """Remove stored results, in the caller's transaction: these runs begin anew."""
    TaskResult.objects.filter(task_id__in=[str(run_id) for run_id in run_ids]).delete()


def _stored(report: Report, row: TaskResult) -> Report:
    value = current_app.backend.decode_content(row, row.result)
    if row.status == states.FAILURE:
        error = current_app.backend.exception_to_python(value)
        return failure(report.run_id, report.token, error, row.traceback or "", cause=STORED)
    return report._replace(
        kind=Kind.SUCCEEDED,
        result=encode_result(value, max_bytes=setting("RESULT_MAX_BYTES")),
        error_type="",
        error_message="",
        delay=None,
        cause=STORED,
    )


def _is_stored(request: Context, state: str) -> bool:
    # What is asked for by name, Celery stores before it tells of a success. Of a failure not
    # always: the last link of a chain is told of the first one's, with the first one's wishes.
    if state == states.SUCCESS and vars(request).get("ignore_result") is False:
        return True
    stored = TaskResult.objects.filter(task_id=request.id, status__in=states.READY_STATES)
    return stored.exists()


def _missing_count(header: GroupResult) -> int:
    ids = list(_task_ids(header))
    [row] = sql.query(_READY, [ids, list(states.READY_STATES)])
    return len(ids) - int(row["count"])


def _task_ids(results: ResultSet) -> Iterator[str]:
    """Yield the ids of all tasks in a header, those inside groups too."""
    for result in results:
        if isinstance(result, ResultSet):
            yield from _task_ids(result)
        else:
            yield result.id
