"""The gate: between the consumer and the pool, and between the pool and the acknowledgement.

A hint waits here until its row is admitted; then Celery goes on with the payload from the
row. What the pool says goes to the recorder first and to Celery second, so a message is
acknowledged only after its outcome is committed. Plain tasks pass untouched.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

from billiard.common import human_status
from billiard.einfo import ExceptionInfo, ExceptionWithTraceback
from billiard.exceptions import Terminated, TimeLimitExceeded, WorkerLostError
from celery.concurrency.prefork import TaskPool
from celery.exceptions import TaskRevokedError
from celery.worker import state as worker_state
from celery.worker.request import Request

from fleet.child import traced
from fleet.contract import HEADER, Admission, Ask, Edges, Kind, Refusal, Report
from fleet.edge import Edge
from fleet.failures import class_names, failure
from fleet.faults import crash_point
from fleet.steps.held import Held, dress, facts_of

logger = logging.getLogger(__name__)

CHILD_LOST: Final = "child lost"
TIME_LIMIT: Final = "time limit"
BUSY_SECONDS: Final = 0.5


class Gate:
    """What one worker node holds, and the hooks that Celery calls."""

    def __init__(self, edges: Edges, edge: Edge) -> None:
        self._edges = edges
        self._edge = edge
        self._held: dict[str, Held] = {}
        self._closing = False

    # --- in: from the consumer ---------------------------------------------------------

    def attach(self, worker: Any) -> None:
        """Stand between this worker's consumer and its pool, before strategies are built."""
        self._pool = worker.pool
        self._later = worker.timer.call_after
        self._forward = worker.consumer.on_task_request
        self._pool_apply = worker.pool.apply_async
        self._release_slot = getattr(worker, "_quick_release", _nothing)
        worker.consumer.on_task_request = self.on_request
        worker.pool.apply_async = self.apply_async

    def on_request(self, request: Request) -> None:
        """Take a message: a plain task goes on, a hint waits for its admission."""
        if HEADER not in request.request_dict:
            if self._edges.requires_row(request.type):
                logger.warning("dropped %s[%s]: it runs only with a row", request.name, request.id)
                self._drop(request)
            else:
                self._forward(request)
            return
        try:
            run_id = str(uuid.UUID(request.id))
        except (ValueError, AttributeError, TypeError):
            self._drop(request)
            return
        if self._closing:
            self._requeue(request)
        elif not self._edge.ask(
            Ask(run_id, request.type), functools.partial(self._answer, request)
        ):
            self._drop(request)

    def _answer(self, request: Request, verdict: Admission | Refusal, asked_at: float) -> None:
        if verdict is Refusal.BUSY:
            # Not at once: it would come back, and ask again, as long as the row is held.
            self._later(BUSY_SECONDS, self._requeue, (request,))
        elif isinstance(verdict, Refusal):
            self._drop(request)
        else:
            # The start deadline counts from the question: a process may be frozen after it.
            held = Held(verdict, request, asked_at)
            self._held[verdict.run_id] = held
            if self._closing:
                self._hand_back(held)
            else:
                self._begin(held)

    def _begin(self, held: Held) -> None:
        try:
            dress(held.request, held.admission)
        except Exception as error:
            # Arguments of a type that only the submitting process could write, say.
            report = failure(held.admission.run_id, held.admission.token, error, "")
            self._settle(held, report, functools.partial(self._failed, held, error))
        else:
            self._forward(held.request)

    # --- through: to the pool ----------------------------------------------------------

    def apply_async(self, target: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
        """Hand a task to the pool; a durable one only past its start gate."""
        facts = facts_of(args)
        if facts is None:
            return self._pool_apply(target, args, kwargs, **options)
        held = self._held.get(facts["run"])
        if held is None or held.settled or held.admission.token != facts["token"]:
            # It waited for a slot and was handed back meanwhile. Celery's worker frees the
            # slot on this error, and on no other.
            raise TaskRevokedError(facts["run"])
        if held.cancelled or held.is_late:
            self._hand_back(held)
            raise TaskRevokedError(facts["run"])
        crash_point("gate.before_pool")
        held.in_pool = True
        held.options = options
        held.job = self._pool_apply(
            traced,
            (target, *args),
            kwargs,
            **{
                **options,
                "accept_callback": functools.partial(self._accepted, held),
                "callback": functools.partial(self._returned, held),
                "error_callback": functools.partial(self._lost, held),
                "timeout_callback": functools.partial(self._timed_out, held),
            },
        )
        return held.job

    # --- out: from the pool ------------------------------------------------------------

    def _accepted(self, held: Held, pid: int, time_accepted: float) -> None:
        # The child's monotonic clock is this process's too: one boot, one machine.
        held.started_at = time_accepted
        held.options["accept_callback"](pid, time_accepted)
        self._edge.report(
            Report(held.admission.run_id, held.admission.token, Kind.STARTED, held.started_at)
        )
        if held.cancelled:
            self._stop(held)

    def _returned(self, held: Held, answer: tuple[Any, ...]) -> None:
        """Take Celery's three values and the child's report."""
        *celerys, report = answer
        celery_next = functools.partial(held.options["callback"], tuple(celerys))
        self._settle(held, report, celery_next)

    def _lost(self, held: Held, einfo: ExceptionInfo) -> None:
        """The child died, ran over its hard limit or was terminated: decide in its place."""
        error = einfo.exception
        if isinstance(error, ExceptionWithTraceback):
            error = error.exc
        if isinstance(error, Terminated):
            if held.cancelled or held.request._already_revoked:
                self._settle(held, self._report(held, Kind.CANCELLED, cause="terminated"))
                return
            # A cold shutdown ends what runs; nobody has cancelled it.
            error = WorkerLostError("the worker was told to stop at once")
        cause = TIME_LIMIT if isinstance(error, TimeLimitExceeded) else CHILD_LOST
        shown = _exit_of(error)
        delay = self._edges.retry_delay(
            held.admission.context["policy"], held.admission.attempt, class_names(shown), None
        )
        report = failure(
            held.admission.run_id, held.admission.token, shown, "", delay=delay, cause=cause
        )
        tell = self._failed if delay is None else self._retried
        self._settle(held, report, functools.partial(tell, held, shown))

    def _timed_out(self, held: Held, soft: bool, timeout: float) -> None:
        if soft:
            held.options["timeout_callback"](soft, timeout)
        elif not held.settled:
            # Prefork tells of a hard limit by an error first; green pools only in this way.
            try:
                raise TimeLimitExceeded(timeout)
            except TimeLimitExceeded:
                self._lost(held, ExceptionInfo())

    def _settle(
        self, held: Held, report: Report, celery_next: Callable[[], Any] | None = None
    ) -> None:
        """Record what became of the attempt, once; Celery hears of it after the commit."""
        if held.settled:
            return
        held.settled = True

        def then(state: str | None) -> None:
            if self._held.get(held.admission.run_id) is held:
                del self._held[held.admission.run_id]
            if celery_next is None or (state == "cancelled" and report.kind is not Kind.FAILED):
                # Also for a try that was to be followed by another, when a cancel came between.
                _announce_cancelled(held.request)
            else:
                celery_next()
            crash_point("ledger.after_ack")

        self._edge.report(report, then)

    def _failed(self, held: Held, error: BaseException) -> None:
        """Tell Celery of a failure that no child told it.

        Not through `Request.on_failure`, whose options may publish or requeue the message.
        """
        request = held.request
        worker_state.task_ready(request)
        request.task.backend.mark_as_failure(
            request.id, error, request=request._context, store_result=request.store_errors
        )
        request.acknowledge()
        request.send_event("task-failed", exception=repr(error), traceback="")

    def _retried(self, held: Held, error: BaseException) -> None:
        worker_state.task_ready(held.request)
        held.request.acknowledge()
        held.request.send_event("task-retried", exception=repr(error), traceback="")

    def held(self) -> list[str]:
        """Return the ids of all runs that this worker was given and that are not yet recorded."""
        return list(self._held)

    # --- cancelled, or not started ------------------------------------------------------

    def cancel(self, run_id: str) -> None:
        """Stop a run of this worker: at the start gate, else softly and after a grace for good."""
        held = self._held.get(run_id)
        if held is None or held.cancelled or held.settled:
            return
        held.cancelled = True
        if held.started_at is not None:
            self._stop(held)

    def _stop(self, held: Held) -> None:
        # Only prefork's children are processes that can be told; elsewhere the task goes on.
        if not isinstance(self._pool, TaskPool):
            return
        # The signal of Celery's soft time limit: the task sees SoftTimeLimitExceeded.
        try:
            os.kill(held.request.worker_pid, signal.SIGUSR1)
        except ProcessLookupError:
            return
        self._later(self._edges.cancel_grace_seconds, self._kill, (held,))

    def _kill(self, held: Held) -> None:
        if not held.settled:
            self._pool.terminate_job(held.request.worker_pid, signal.SIGKILL)

    def _hand_back(self, held: Held) -> None:
        """Return an admitted run that did not start; or end it, when it was cancelled."""
        kind = Kind.CANCELLED if held.cancelled else Kind.GIVEN_BACK
        self._settle(held, self._report(held, kind), functools.partial(self._drop, held.request))

    def hand_back_late(self) -> None:
        """Hand back what did not begin in time: no slot, no child, or a lost connection."""
        for held in list(self._held.values()):
            if held.is_late and (not held.in_pool or self._withdraw(held)):
                self._hand_back(held)

    def _withdraw(self, held: Held) -> bool:
        """Take a run back from the pool; False when a child has it, or is about to."""
        pool = getattr(self._pool, "_pool", None)
        waiting = getattr(pool, "outbound_buffer", None)
        if waiting is None or held.job not in waiting:
            return False
        waiting.remove(held.job)
        held.job.discard()
        self._release_slot()
        return True

    def waiting_in_pool(self) -> list[Held]:
        """Return the runs that are in the pool and that no child has accepted yet."""
        return [
            held
            for held in self._held.values()
            if held.in_pool and held.started_at is None and not held.settled
        ]

    def reclaim(self, waiting: Sequence[Held]) -> None:
        """Deal with runs that Celery's pool has forgotten with a lost connection.

        What no child was sent is handed back; what one was sent it will run, so the pool is
        made to remember it.
        """
        pool = getattr(self._pool, "_pool", None)
        for held in waiting:
            job = held.job
            if getattr(job, "_write_to", None) is None:
                self._hand_back(held)
            elif pool is not None:
                pool._cache[job._job] = job

    def close(self) -> None:
        """Admit nothing more; hand back what is admitted and not in the pool."""
        self._closing = True
        for held in list(self._held.values()):
            if not held.in_pool:
                self._hand_back(held)

    def _report(self, held: Held, kind: Kind, *, cause: str = "") -> Report:
        return Report(
            held.admission.run_id, held.admission.token, kind, time.monotonic(), cause=cause
        )

    def _drop(self, request: Request) -> None:
        worker_state.task_ready(request)
        request.acknowledge()

    def _requeue(self, request: Request) -> None:
        worker_state.task_ready(request)
        request.reject(requeue=True)


def _announce_cancelled(request: Request) -> None:
    # Celery's own `terminate` has announced it already.
    if not request._already_revoked:
        request._announce_revoked("terminated", True, "cancelled", False)


def _nothing() -> None:
    """Release no slot: pools without a semaphore count none."""


def _exit_of(error: BaseException) -> BaseException:
    """Return the error with a readable text in place of a bare exit."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 1
        return WorkerLostError(f"the worker process exited: {human_status(code)}")
    return error
