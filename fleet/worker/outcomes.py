"""What comes out of the pool, and how Celery hears of it.

The pool's word goes to the recorder first and to Celery second, so a message is acknowledged
only after its outcome is committed. What the child could not say is decided here in its place.
Of a run without a row nothing is recorded: its message goes when that of its next attempt is out.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from billiard.common import human_status
from billiard.einfo import ExceptionInfo, ExceptionWithTraceback
from billiard.exceptions import Terminated, TimeLimitExceeded, WorkerLostError
from celery.concurrency.prefork import TaskPool
from celery.worker import state as worker_state
from celery.worker.request import Request

from fleet.contract import NOT_BEGUN, Application, Hint, Kind, NotBegun, Report
from fleet.crash_points import crash_point
from fleet.logs import log_event
from fleet.pool import ask_to_stop, has_read
from fleet.router import acting_as
from fleet.worker.admitted import AdmittedRun
from fleet.worker.failures import class_names, failure
from fleet.worker.io_thread import IOThread

logger = logging.getLogger(__name__)

CHILD_LOST: Final = "child lost"
TIME_LIMIT: Final = "time limit"
READ_SECONDS: Final = 0.02


class Outcomes:
    """Settles the runs that one worker node holds, each once."""

    def __init__(
        self, application: Application, io_thread: IOThread, held: dict[str, AdmittedRun]
    ) -> None:
        self._application = application
        self._io_thread = io_thread
        self._held = held
        self.open_count = 0
        """How many of them have no outcome yet."""

    def attach(self, worker: Any) -> None:
        """Learn of this worker's pool and timer."""
        self._pool = worker.pool
        self._later = worker.timer.call_after

    def callbacks(self, held: AdmittedRun) -> dict[str, Callable[..., None]]:
        """Return what the pool calls, in place of what Celery gave it, which is called later."""
        return {
            "accept_callback": functools.partial(self._accepted, held),
            "callback": functools.partial(self._returned, held),
            "error_callback": functools.partial(self._lost, held),
            "timeout_callback": functools.partial(self._timed_out, held),
        }

    def settle(
        self, held: AdmittedRun, report: Report, celery_next: Callable[[], Any] | None = None
    ) -> None:
        """Record what became of the attempt, once; Celery hears of it after the commit."""
        if held.settled:
            return
        held.settled = True
        self.open_count -= 1
        if held.admission.next_hint is not None:
            self._settle_unkept(held, report, celery_next, next_hint=held.admission.next_hint)
            return

        def then(state: str | None) -> None:
            self._forget(held)
            if celery_next is None or (state == "cancelled" and report.kind is not Kind.FAILED):
                # Also for a try that was to be followed by another, when a cancel came between.
                _announce_cancelled(held.request)
            elif _has_ended_otherwise(report, state):
                # Celery has stored how it ended, before its child was lost.
                drop(held.request)
            else:
                celery_next()
            crash_point("ledger.after_ack")

        # An idle worker has nothing better to do, and its caller may be waiting.
        is_urgent = held.admission.is_limited or self.open_count == 0
        self._io_thread.report(report, then, is_urgent=is_urgent)

    def _settle_unkept(
        self,
        held: AdmittedRun,
        report: Report,
        celery_next: Callable[[], Any] | None,
        *,
        next_hint: Hint,
    ) -> None:
        """Let Celery hear of an attempt of which nothing is written, and go on after it."""

        def then() -> None:
            self._forget(held)
            if celery_next is None:
                _announce_cancelled(held.request)
            else:
                celery_next()

        if report.kind is Kind.RETRYING:
            self._io_thread.publish(next_hint._replace(delay_seconds=report.delay or 0.0), then)
            return
        if report.kind is Kind.FAILED:
            _log_failed(held, report)
        then()

    def _forget(self, held: AdmittedRun) -> None:
        if self._held.get(held.admission.key) is held:
            del self._held[held.admission.key]
        # The job knows it by its callbacks: a ring, which only Python's collector would undo.
        held.job = None

    def try_again(self, held: AdmittedRun) -> None:
        """End an attempt that did nothing, though its start is recorded; the next comes at once."""
        error = NotBegun("its worker had no process for it in time")
        named = held.admission.run_id, held.admission.token
        report = failure(*named, error, "", delay=0.0, cause=NOT_BEGUN)
        self.settle(held, report, functools.partial(_tell_retried, held.request, error))

    def unreadable(self, held: AdmittedRun, error: BaseException) -> None:
        """Fail a run whose payload cannot be read."""
        report = failure(held.admission.run_id, held.admission.token, error, "")
        self.settle(held, report, functools.partial(_tell_failed, held.request, error))

    def stop(self, held: AdmittedRun) -> None:
        """Stop a run that has started: softly, and after a grace for good."""
        # Only prefork's children are processes that can be told; elsewhere the task goes on.
        if held.settled or not isinstance(self._pool, TaskPool):
            return
        child = getattr(held.job, "_write_to", None)
        if not has_read(child, held.job):
            # Its process is still at the job before, or about to read this one.
            self._later(READ_SECONDS, self.stop, (held,))
            return
        # The signal of Celery's soft time limit: the task sees SoftTimeLimitExceeded.
        ask_to_stop(child, held.job)
        try:
            os.kill(held.request.worker_pid, signal.SIGUSR1)
        except ProcessLookupError:
            return
        self._later(self._application.cancel_grace_seconds, self._kill, (held,))

    def _kill(self, held: AdmittedRun) -> None:
        if not held.settled:
            self._pool.terminate_job(held.request.worker_pid, signal.SIGKILL)

    # --- what the pool calls -----------------------------------------------------------

    def _accepted(self, held: AdmittedRun, pid: int, time_accepted: float) -> None:
        # The child's monotonic clock is this process's too: one boot, one machine.
        held.started_at = time_accepted
        held.options["accept_callback"](pid, time_accepted)
        if held.admission.is_kept and not held.is_recorded:
            self._io_thread.note_start(held.admission.run_id, held.admission.token, time_accepted)
        if held.cancelled:
            self.stop(held)

    def on_unread(self, held: AdmittedRun) -> None:
        """Take back that it has begun: its process ended before it came to read it."""
        held.started_at = None
        if held.admission.is_kept:
            # The row may take it for running by now.
            held.is_recorded = not self._io_thread.cancel_start(
                held.admission.run_id, held.admission.token
            )

    def _returned(self, held: AdmittedRun, answer: tuple[Any, ...]) -> None:
        """Take Celery's three values and the child's report."""
        *celerys, report = answer
        celery_next = functools.partial(held.options["callback"], tuple(celerys))
        self.settle(held, report, celery_next)

    def _lost(self, held: AdmittedRun, einfo: ExceptionInfo) -> None:
        """The child died, ran over its hard limit or was terminated: decide in its place."""
        error = einfo.exception
        if isinstance(error, ExceptionWithTraceback):
            error = error.exc
        if isinstance(error, Terminated):
            if held.cancelled or held.request._already_revoked:
                self.settle(held, held.report(Kind.CANCELLED, cause="terminated"))
                return
            # A cold shutdown ends what runs; nobody has cancelled it.
            error = WorkerLostError("the worker was told to stop at once")
        cause = TIME_LIMIT if isinstance(error, TimeLimitExceeded) else CHILD_LOST
        shown = _exit_of(error)
        delay = self._application.retry_delay(
            held.admission.context["policy"], held.admission.attempt, class_names(shown), None
        )
        report = failure(
            held.admission.run_id, held.admission.token, shown, "", delay=delay, cause=cause
        )
        tell = _tell_failed if delay is None else _tell_retried
        self.settle(held, report, functools.partial(tell, held.request, shown))

    def _timed_out(self, held: AdmittedRun, soft: bool, timeout: float) -> None:
        if soft:
            held.options["timeout_callback"](soft, timeout)
        elif not held.settled:
            # Prefork tells of a hard limit by an error first; green pools only in this way.
            try:
                raise TimeLimitExceeded(timeout)
            except TimeLimitExceeded:
                self._lost(held, ExceptionInfo())


def _has_ended_otherwise(report: Report, state: str | None) -> bool:
    """Say whether the recorder knew better than a report of a lost attempt."""
    known = {Kind.RETRYING: ("succeeded", "failed"), Kind.FAILED: ("succeeded",)}
    return state in known.get(report.kind, ())


def _log_failed(held: AdmittedRun, report: Report) -> None:
    """Say once what no row will tell."""
    facts = {
        "run": report.run_id,
        "task": held.request.name,
        "attempt": held.admission.attempt,
        **{name: held.admission.context.get(name) for name in ("job", "owner", "due_at")},
        "cause": report.cause or report.error_type,
        "error": report.error_message,
    }
    log_event(logger, logging.ERROR, "run_without_history_failed", facts)


def drop(request: Request) -> None:
    """Acknowledge a message that needs no more: its row remembers."""
    worker_state.task_ready(request)
    request.acknowledge()


def requeue(request: Request) -> None:
    """Give a message back to the broker."""
    worker_state.task_ready(request)
    request.reject(requeue=True)


def _tell_failed(request: Request, error: BaseException) -> None:
    """Tell Celery of a failure that no child told it.

    Not through `Request.on_failure`, whose options may publish or requeue the message.
    """
    worker_state.task_ready(request)
    with acting_as(request.request_dict):
        request.task.backend.mark_as_failure(
            request.id, error, request=request._context, store_result=request.store_errors
        )
    request.acknowledge()
    request.send_event("task-failed", exception=repr(error), traceback="")


def _tell_retried(request: Request, error: BaseException) -> None:
    drop(request)
    request.send_event("task-retried", exception=repr(error), traceback="")


def _announce_cancelled(request: Request) -> None:
    # Celery's own `terminate` has announced it already.
    if not request._already_revoked:
        request._announce_revoked("terminated", True, "cancelled", False)


def _exit_of(error: BaseException) -> BaseException:
    """Return the error with a readable text in place of a bare exit."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 1
        return WorkerLostError(f"the worker process exited: {human_status(code)}")
    return error
