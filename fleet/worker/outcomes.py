"""Outcomes of the pool: recorded first, then passed to Celery.

So a message is acknowledged only after its outcome is committed. If a child was lost, its outcome
is decided here. Nothing is recorded of a run without a row: its message is acknowledged when the
hint of its next attempt is published.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final

from billiard.common import human_status
from billiard.einfo import ExceptionInfo
from billiard.exceptions import Terminated, TimeLimitExceeded, WorkerLostError
from celery.app.task import Context
from celery.concurrency.prefork import TaskPool
from celery.worker import state as worker_state
from celery.worker.request import Request

from fleet import log_events
from fleet.callbacks import guarded
from fleet.contract import NOT_BEGUN, Application, Hint, Kind, NotBegun, Report
from fleet.crash_points import crash_point
from fleet.pool import Job
from fleet.router import acting_as
from fleet.steering import SNOOZED
from fleet.worker.admitted import AdmittedRun
from fleet.worker.failures import class_names, failure, unwrapped
from fleet.worker.io_thread import IOThread

logger = logging.getLogger(__name__)

CHILD_LOST: Final = "child lost"
TIME_LIMIT: Final = "time limit"


class Outcomes:
    """Settles each run of one worker node once."""

    def __init__(
        self, application: Application, io_thread: IOThread, held: dict[str, AdmittedRun]
    ) -> None:
        self._application = application
        self._io_thread = io_thread
        self._held = held
        self.open_count = 0
        """How many of them have no outcome yet."""

    def attach(self, worker: Any) -> None:
        """Use this worker's pool and timer."""
        self._pool = worker.pool
        self._later = worker.timer.call_after

    def callbacks(self, held: AdmittedRun) -> dict[str, Callable[..., None]]:
        """Return the pool's callbacks; Celery's own are called after the record."""
        return {
            "accept_callback": functools.partial(self._accepted, held),
            "callback": functools.partial(self._returned, held),
            "error_callback": functools.partial(self._lost, held),
            "timeout_callback": functools.partial(self._timed_out, held),
        }

    def settle(
        self, held: AdmittedRun, report: Report, celery_next: Callable[[], Any] | None = None
    ) -> None:
        """Record the attempt's outcome, once; call `celery_next` after the commit."""
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
                # The row is cancelled also if the report asks for a retry: the cancel came first.
                _announce_cancelled(held.request)
            elif _has_ended_otherwise(report, state):
                # Celery has stored its end, before its child was lost.
                drop(held.request)
            else:
                celery_next()
            crash_point("ledger.after_ack")

        # An idle worker has time, and a caller may be waiting.
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
        """Pass an outcome that is not recorded to Celery; before that, publish the next hint."""

        def then() -> None:
            self._forget(held)
            if celery_next is None:
                _announce_cancelled(held.request)
            else:
                celery_next()

        if report.kind is Kind.RETRYING:
            # The token alone makes it another hint: a snooze spends no attempt.
            spent = report.cause != SNOOZED
            next_hint = next_hint._replace(
                attempt=held.admission.attempt + spent, delay_seconds=report.delay or 0.0
            )
            self._io_thread.publish(next_hint, then)
            return
        if report.kind is Kind.FAILED:
            _log_failed(held, report, hides_text=self._application.hides_values)
        then()

    def _forget(self, held: AdmittedRun) -> None:
        if self._held.get(held.admission.key) is held:
            del self._held[held.admission.key]
        # The job refers to it by its callbacks: a reference cycle.
        held.job = None

    def try_again(self, held: AdmittedRun) -> None:
        """Retry at once an attempt that did not begin, although its start is recorded."""
        error = NotBegun("its worker had no process for it in time")
        named = held.admission.run_id, held.admission.token
        report = failure(*named, error, "", delay=0.0, cause=NOT_BEGUN)
        self.settle(held, report, functools.partial(_tell_retried, held.request, error))

    def unreadable(self, held: AdmittedRun, error: BaseException) -> None:
        """Fail a run whose payload cannot be read."""
        report = failure(held.admission.run_id, held.admission.token, error, "")
        self.settle(held, report, functools.partial(_tell_failed, held.request, error))

    def stop(self, held: AdmittedRun) -> None:
        """Stop a run that has started: softly, and with SIGKILL after a grace period."""
        # Only prefork's children can be signalled; on other pools the task continues.
        if held.settled or not isinstance(self._pool, TaskPool):
            return
        grace = self._application.cancel_grace_seconds
        if isinstance(held.job, Job):
            if not held.job.ask_to_stop():
                return  # it has ended
            # Celery 5.5 fires no timers while its pool stops.
            held.job.kill_at = time.monotonic() + grace
        # The signal of Celery's soft time limit: the task sees SoftTimeLimitExceeded.
        try:
            os.kill(held.request.worker_pid, signal.SIGUSR1)
        except ProcessLookupError:
            return
        self._later(grace, guarded(self._kill), (held,))

    def _kill(self, held: AdmittedRun) -> None:
        if not held.settled:
            self._pool.terminate_job(held.request.worker_pid, signal.SIGKILL)

    # --- what the pool calls -----------------------------------------------------------

    def _accepted(self, held: AdmittedRun, pid: int, time_accepted: float) -> None:
        # The child's monotonic clock is this machine's.
        held.started_at = time_accepted
        held.options["accept_callback"](pid, time_accepted)
        if held.admission.is_kept and not held.is_recorded:
            self._io_thread.note_start(held.admission.run_id, held.admission.token, time_accepted)
        if held.cancelled:
            self.stop(held)

    def _returned(self, held: AdmittedRun, answer: tuple[Any, ...]) -> None:
        """Settle with Celery's three values and the child's report."""
        *celerys, report = answer
        celery_next = functools.partial(held.options["callback"], tuple(celerys))
        self.settle(held, report, celery_next)

    def _lost(self, held: AdmittedRun, einfo: ExceptionInfo) -> None:
        """Decide the outcome: the child died or was terminated, or the run hit its hard limit."""
        error = unwrapped(einfo.exception)
        if isinstance(error, Terminated):
            if held.cancelled or held.request._already_revoked:
                self.settle(held, held.report(Kind.CANCELLED, cause="terminated"))
                return
            # A cold shutdown terminates runs that were not cancelled.
            error = WorkerLostError("the worker was stopped at once")
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
            try:
                raise TimeLimitExceeded(timeout)
            except TimeLimitExceeded:
                self._lost(held, ExceptionInfo())


def _has_ended_otherwise(report: Report, state: str | None) -> bool:
    """Say whether the row has another outcome: of a lost attempt, or after a refused report."""
    known = {
        Kind.RETRYING: ("succeeded", "failed"),
        Kind.FAILED: ("succeeded",),
        Kind.SUCCEEDED: ("failed",),
    }
    return state in known.get(report.kind, ())


def _log_failed(held: AdmittedRun, report: Report, *, hides_text: bool) -> None:
    """Log a failure that no row records."""
    facts = {
        "run_id": report.run_id,
        "task": held.request.name,
        "attempt": held.admission.attempt,
        **{name: held.admission.context.get(name) for name in ("job", "owner", "due_at")},
        "cause": report.cause or report.error_type,
        "error": report.error_type if hides_text else report.error_message,
    }
    log_events.EPHEMERAL_RUN_FAILED.log(logger, **facts)


def drop(request: Request) -> None:
    """Acknowledge a message that is not needed: its row brings another one if necessary."""
    worker_state.task_ready(request)
    request.acknowledge()


def requeue(request: Request) -> None:
    """Give a message back to the broker."""
    worker_state.task_ready(request)
    request.reject(requeue=True)


def _tell_failed(request: Request, error: BaseException) -> None:
    """Store a failure in Celery that no child has stored.

    Not by `Request.on_failure`, which may requeue the message.
    """
    worker_state.task_ready(request)
    with acting_as(request.request_dict):
        request.task.backend.mark_as_failure(
            request.id, error, request=_context_of(request), store_result=request.store_errors
        )
    request.acknowledge()
    request.send_event("task-failed", exception=repr(error), traceback="")


def _context_of(request: Request) -> Context:
    """Return what a backend reads of a request; no callbacks, if its payload is unreadable."""
    embed = request.body[2] if isinstance(request.body, tuple) else None
    return Context({**request.request_dict, **(embed or {})})


def _tell_retried(request: Request, error: BaseException) -> None:
    drop(request)
    request.send_event("task-retried", exception=repr(error), traceback="")


def _announce_cancelled(request: Request) -> None:
    # Celery's own `terminate` has announced it.
    if not request._already_revoked:
        request._announce_revoked("terminated", True, "cancelled", False)


def _exit_of(error: BaseException) -> BaseException:
    """Return the error with a readable text in place of a bare exit."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 1
        return WorkerLostError(f"the worker process exited: {human_status(code)}")
    return error
