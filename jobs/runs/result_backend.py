"""Celery's result backend for durable runs: a chord counts each member's end once.

If a process dies after its result was stored, the run is tried again, and ends twice for Celery.
django-celery-results would count both ends and call the chord's body too early. It would also
lack the results of members that ignore theirs, as runs do by default.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from celery import current_app, states
from celery.app import trace
from celery.app.task import Context
from celery.canvas import maybe_signature
from celery.result import GroupResult, ResultSet
from django.db import router, transaction
from django_celery_results.backends.database import DatabaseBackend, trigger_callback
from django_celery_results.models import ChordCounter, TaskResult

from fleet import Kind, Report
from fleet.worker.failures import failure
from jobs.catalog.encoding import encode_result
from jobs.core import crypto, log_events, sql
from jobs.core.conf import setting
from jobs.core.crypto import Damaged, Place, UnknownKey

logger = logging.getLogger(__name__)

STORED: Final = "stored outcome"
"""The cause of a move by the stored result of a lost attempt."""

SEALED: Final = "fairshift-encrypted"
"""The name in a stored result whose value is the id of a key, and the encrypted result."""
FIELD: Final = "result of Celery"

HEEDS_CALLS: Final = hasattr(trace, "get_actual_ignore_result")
"""Whether Celery stores the result of a call that asks for it; 5.5 goes by its task alone."""

_READY = """
SELECT count(*) FROM django_celery_results_taskresult WHERE task_id = ANY(%s) AND status = ANY(%s)
"""


class ResultBackend(DatabaseBackend):
    """django-celery-results' backend, whose chords call their body once, after all members."""

    def _store_result(
        self, task_id: str, result: Any, status: str, traceback: Any = None, **more: Any
    ) -> Any:
        """Store a result, with a key ring as an encrypted one that has the traceback in it."""
        if crypto.ring() is not None:
            _type, _encoding, text = self.encode_content([result, traceback])
            sealed = crypto.seal(text.encode(), field=FIELD, place=Place("", task_id))
            result, traceback = {SEALED: [sealed.key, b64encode(sealed.data).decode()]}, None
        return super()._store_result(task_id, result, status, traceback, **more)

    def _get_extended_properties(self, request: Any, traceback: Any) -> Any:
        """Return the row's columns about the call; with a key ring, without its arguments."""
        found = super()._get_extended_properties(request, traceback)
        hidden = {} if crypto.ring() is None else {"task_args": None, "task_kwargs": None}
        return {**found, **hidden}

    def read(self, row: TaskResult) -> tuple[Any, str | None]:
        """Return the value and the traceback of a row; raise UnknownKey or Damaged."""
        value = super().decode_content(row, row.result)
        if not (isinstance(value, dict) and value.keys() == {SEALED}):
            if value is not None:
                crypto.refuse_clear(FIELD)
            return value, row.traceback
        key, text = value[SEALED]
        place = Place("", row.task_id)
        data = crypto.open_bytes(b64decode(text), key=key, field=FIELD, place=place)
        value, traceback = super().decode_content(row, data.decode())
        return value, traceback

    def decode_content(self, obj: Any, content: Any) -> Any:
        """Return what a column of a row holds, in clear."""
        if not content or not isinstance(obj, TaskResult) or content != obj.result:
            return super().decode_content(obj, content)
        try:
            return self.read(obj)[0]
        except (UnknownKey, Damaged) as error:
            # The state of the task can be read all the same.
            text = f"the result cannot be read ({error})"
            if obj.status not in states.EXCEPTION_STATES:
                return text
            return {"exc_module": "builtins", "exc_type": "LookupError", "exc_message": [text]}

    def _get_task_meta_for(self, task_id: str) -> Any:
        """Return what is known of a task, with the traceback of an encrypted failure."""
        found = super()._get_task_meta_for(task_id)
        if found["status"] in states.EXCEPTION_STATES and not found.get("traceback"):
            row = self.TaskModel._default_manager.get_task(task_id)
            with suppress(UnknownKey, Damaged):
                found["traceback"] = self.read(row)[1]
        return found

    def on_chord_part_return(
        self,
        request: Any,
        state: Any,
        result: Any,
        **kwargs: Any,  # noqa: ARG002  Celery passes them
    ) -> None:
        """Call the chord's body if this was its last member. Repeating is harmless.

        Stores a missing result first: the body needs it, also if the member ignores it.

        The counter is a lower bound of the missing ends: each report lowers it. At zero, the stored
        ends are counted, and the counter becomes the number that is missing. Counting at each end
        would cost the square of the chord's size. The call is part of the transaction: if the
        process dies in it, the end is reported again. A durable body is submitted once; a plain
        one is called twice, with the same id, if the process dies between its call and the commit.
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
                # Its body has been called: this end is reported again.
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
    """Return reports of lost attempts, with the result that Celery has stored if there is one.

    The process died after its task had ended and before it reported it. Another attempt would give
    callers, errbacks and chords a second end. Only runs that do not ignore their result have one.
    """
    if not reports:
        return []
    lost = {report.run_id: report for report in reports}
    final = (states.SUCCESS, states.FAILURE)
    for row in TaskResult.objects.filter(task_id__in=list(lost), status__in=final):
        try:
            lost[row.task_id] = _stored(lost[row.task_id], row)
        except Exception:
            # Whatever it is, the reports of other runs go on.
            log_events.OUTCOME_UNREADABLE.log(logger, run_id=row.task_id, exc_info=True)
    return [lost[report.run_id] for report in reports]


def forget(run_ids: Sequence[Any]) -> None:
    """Delete the stored results of runs that are retried, in the caller's transaction."""
    TaskResult.objects.filter(task_id__in=[str(run_id) for run_id in run_ids]).delete()


def _stored(report: Report, row: TaskResult) -> Report:
    value, traceback = current_app.backend.read(row)
    if row.status == states.FAILURE:
        error = current_app.backend.exception_to_python(value)
        return failure(report.run_id, report.token, error, traceback or "", cause=STORED)
    return report._replace(
        kind=Kind.SUCCEEDED,
        result=encode_result(value, max_bytes=setting("RESULT_MAX_BYTES")),
        error_type="",
        error_message="",
        delay=None,
        cause=STORED,
    )


def _is_stored(request: Context, state: str) -> bool:
    # Celery has stored a success if a result is wanted. Not always a failure: the last task of a
    # chain gets that of the first, with the options of the first.
    is_wanted = vars(request).get("ignore_result") is False
    if HEEDS_CALLS and state == states.SUCCESS and is_wanted:
        return True
    stored = TaskResult.objects.filter(task_id=request.id, status__in=states.READY_STATES)
    return stored.exists()


def _missing_count(header: GroupResult) -> int:
    ids = list(_task_ids(header))
    [row] = sql.query(_READY, [ids, list(states.READY_STATES)])
    return len(ids) - int(row["count"])


def _task_ids(results: ResultSet) -> Iterator[str]:
    """Yield the ids of all tasks in a header, also inside groups."""
    for result in results:
        if isinstance(result, ResultSet):
            yield from _task_ids(result)
        else:
            yield result.id
