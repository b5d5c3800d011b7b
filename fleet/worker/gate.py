"""The gate between a worker's consumer and its pool.

A hint waits here until its row is admitted; then Celery continues with the payload of the row. A
run that does not start in time is handed back; `outcomes` handles those that start. Plain tasks
pass unchanged.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from celery.exceptions import TaskRevokedError
from celery.worker import state as worker_state
from celery.worker.request import Request

from fleet import log_events
from fleet.callbacks import guarded
from fleet.contract import HEADER, Admission, Application, Kind, Refusal, is_hint
from fleet.crash_points import crash_point
from fleet.pool import children_of
from fleet.worker.admitted import AdmittedRun, admission_request_of, facts_of
from fleet.worker.celery_requests import AdmittedRequests
from fleet.worker.child import traced
from fleet.worker.io_thread import IOThread
from fleet.worker.outcomes import Outcomes, drop, requeue

logger = logging.getLogger(__name__)

BUSY_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 1.0


class Gate:
    """The admitted runs of one worker node, and the hooks that Celery calls."""

    def __init__(self, application: Application, io_thread: IOThread, *, slots: int = 1) -> None:
        self._application = application
        self.lease_ends: Callable[[], float] = lambda: math.inf  # by the monotonic clock
        self._io_thread = io_thread
        self._slots = slots
        self._requires_row = functools.cache(application.requires_row)
        self._held: dict[str, AdmittedRun] = {}
        self._outcomes = Outcomes(application, io_thread, self._held)
        self._closing = False
        self._pool_is_closed = False
        self._is_looking = False

    # --- in: from the consumer ---------------------------------------------------------

    def attach(self, worker: Any) -> None:
        """Stand between this worker's consumer and its pool, before strategies are built."""
        self._pool = worker.pool
        self._later = worker.timer.call_after
        self._forward = worker.consumer.process
        self.celery_requests = AdmittedRequests(worker.consumer)
        self._entrance = worker.pool.apply_async
        # A pool without a semaphore counts no slots.
        self._release_slot = getattr(worker.semaphore, "release", lambda: None)
        self._outcomes.attach(worker)
        self._entrance.gate = self.apply_async

    def take_hint(self, message: Any) -> bool:
        """Have a hint admitted; False if Celery is to handle its message first."""
        if not self.celery_requests.may_skip_celery(message.headers.get("task")):
            return False
        self._ask(message, is_announced=False)
        return True

    def on_request(self, request: Request) -> None:
        """Take what Celery has made of a message: forward a plain task, have a hint admitted."""
        if is_hint(request.request_dict):
            # Celery has announced it, and kept it within its task's rate.
            worker_state.task_ready(request)
            self._ask(request.message, is_announced=True)
        elif self._requires_row(request.type):
            facts = {"task": request.name, "message_id": request.id}
            log_events.PLAIN_MESSAGE_DROPPED.log(logger, **facts)
            drop(request)
        else:
            self._forward(request)

    def _ask(self, message: Any, *, is_announced: bool) -> None:
        admission_request = admission_request_of(message.headers)
        if admission_request is None:
            self.celery_requests.acknowledge(message)
            return
        if self._closing:
            self.celery_requests.requeue(message)
            return
        # With a run in each slot and another behind it, requests can wait for a batch.
        is_urgent = self._outcomes.open_count < 2 * self._slots
        answer = functools.partial(self._answer, message, is_announced)
        asked = (admission_request, answer)
        is_held = admission_request.job is not None and admission_request.key in self._held
        if is_held or not self._io_thread.request_admission(*asked, is_urgent=is_urgent):
            # The same message was delivered again, after its lease expired. It may be the only
            # copy: that of a run without a row, or of a run whose first request is refused later.
            self._requeue_later(message)

    def _answer(
        self,
        message: Any,
        is_announced: bool,
        verdict: Admission | Refusal,
        asked_at: float,
    ) -> None:
        if verdict is Refusal.BUSY:
            self._requeue_later(message)
        elif isinstance(verdict, Refusal):
            self.celery_requests.acknowledge(message)
        else:
            self._begin(message, verdict, asked_at, is_announced=is_announced)

    def _requeue_later(self, message: Any) -> None:
        """Give a message back after a pause, so that it does not ask in a tight loop."""
        self._later(BUSY_SECONDS, guarded(self.celery_requests.requeue), (message,))

    def _begin(
        self, message: Any, admission: Admission, asked_at: float, *, is_announced: bool
    ) -> None:
        unreadable = None
        try:
            request = self.celery_requests.make(message, admission)
        except Exception as error:
            # For example, arguments of a type that this process cannot read.
            unreadable, request = error, self.celery_requests.make_bare(message, admission)
        # The start deadline counts from the request: this process may be frozen after it.
        held = AdmittedRun(admission, request, asked_at)
        self._held[admission.key] = held
        self._outcomes.open_count += 1
        self._look_later()
        if self._closing:
            self._hand_back(held)
        elif unreadable:
            self._outcomes.unreadable(held, unreadable)
        else:
            if not is_announced:
                self.celery_requests.announce(request)
            worker_state.task_reserved(request)
            self._forward(request)
            if not is_announced:
                self.celery_requests.notify_autoscaler(request)

    # --- through: to the pool ----------------------------------------------------------

    def apply_async(self, target: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
        """Hand a task to the pool; check the start deadline and cancellation of an admitted run."""
        facts = facts_of(args)
        if facts is None:
            return self._entrance.hand_in(target, args, kwargs, **options)
        held = self._held.get(facts["key"])
        if held is None or held.settled or held.request.request_dict is not args[2]:
            # It was handed back while it waited for a slot; `held` may be the same message,
            # delivered again. Celery's worker frees the slot on this error only.
            raise TaskRevokedError(facts["run"])
        held.lease_ends = self.lease_ends()  # it may not have been renewed since the admission
        if held.cancelled or held.is_late:
            self._hand_back(held)
            raise TaskRevokedError(facts["run"])
        # The child checks it again: it may be frozen. No row would publish one without a row again.
        begins_by = held.begins_by if held.admission.is_kept else None
        args[2][HEADER] = {**facts, "closes_at": held.closes_at, "begins_by": begins_by}
        held.in_pool = True
        held.options = options
        into_pool = functools.partial(self._into_pool, held, (target, *args), kwargs)
        if not held.admission.records_start_first:
            return into_pool()
        held.is_starting = True
        report = held.report(Kind.STARTED)
        self._io_thread.report(report, functools.partial(self._start_recorded, held, into_pool))
        return None

    def _into_pool(self, held: AdmittedRun, args: Any, kwargs: Any) -> Any:
        crash_point("gate.before_pool")
        callbacks = self._outcomes.callbacks(held)
        held.job = self._entrance.hand_in(traced, args, kwargs, **{**held.options, **callbacks})
        return held.job

    def _start_recorded(
        self, held: AdmittedRun, into_pool: Callable[[], Any], state: str | None
    ) -> None:
        """Hand a run whose start is committed to the pool, or hand it back."""
        held.is_starting, held.is_recorded = False, state == "running"
        held.cancelled = held.cancelled or state == "cancelling"
        may_begin = held.is_recorded and not held.cancelled and not held.is_late
        if may_begin and not self._pool_is_closed:
            self._entrance.lend_slot(into_pool())
        else:
            self._release_slot()
            self._hand_back(held)

    # --- back: cancelled, or not started -----------------------------------------------

    def held(self) -> list[str]:
        """Return the ids of this worker's runs without a recorded outcome; no runs without rows."""
        return [key for key, held in list(self._held.items()) if held.admission.is_kept]

    def admitted(self, run_id: str) -> AdmittedRun | None:
        """Return a run of this worker with a row, from any thread."""
        return self._held.get(run_id)

    def cancel(self, run_id: str) -> None:
        """Cancel a run: if it has started, softly, and with SIGKILL after a grace period."""
        held = self._held.get(run_id)
        if held is None or held.cancelled or held.settled:
            return
        held.cancelled = True
        if held.started_at is not None:
            self._outcomes.stop(held)

    def _look_later(self) -> None:
        """Look each second for runs that did not start in time; without runs, nothing wakes."""
        if self._held and not self._is_looking:
            self._is_looking = True
            self._later(LOOK_SECONDS, guarded(self._look), ())

    def _look(self) -> None:
        self._is_looking = False
        try:
            self.hand_back_late()
        finally:
            self._look_later()

    def hand_back_late(self) -> None:
        """Hand back the runs that did not start in time."""
        for held in list(self._held.values()):
            if held.is_late and (not held.in_pool or self._withdraw(held)):
                self._hand_back(held)

    def waiting_in_pool(self) -> list[AdmittedRun]:
        """Return the runs in the pool that no child has accepted yet."""
        return [
            held
            for held in self._held.values()
            if held.in_pool and held.started_at is None and not (held.settled or held.is_starting)
        ]

    def reclaim(self, waiting: Sequence[AdmittedRun]) -> None:
        """Hand back runs after a lost connection.

        These are the runs that no child has read, which the pool has dropped; and those without a
        row and a slot, whose messages come again.
        """
        children = children_of(self._pool)
        for held in waiting:
            if children is None or not children.has(held.job):
                self._hand_back(held)
        for held in list(self._held.values()):
            if not held.in_pool and not held.admission.is_kept:
                self._hand_back(held)

    @property
    def starting_count(self) -> int:
        """How many runs have a slot and wait until their start is recorded."""
        return sum(held.is_starting for held in self._held.values())

    def close(self) -> None:
        """Admit nothing more; hand back what was not sent to a child."""
        self._closing = True
        if children := children_of(self._pool):
            children.recall()
        for held in list(self._held.values()):
            if not held.in_pool or self._withdraw(held):
                self._hand_back(held)

    def open(self) -> None:
        """Admit again, after `close`."""
        self._closing = False

    def pool_closes(self) -> None:
        """Put nothing more into the pool, which would drop it silently."""
        self.close()
        self._pool_is_closed = True

    def _hand_back(self, held: AdmittedRun) -> None:
        """Give back an admitted run that did not start; end it if it was cancelled.

        Its row publishes another hint. A run without a row has only this message.
        """
        if held.is_recorded and not held.cancelled:
            self._outcomes.try_again(held)
            return
        kind = Kind.CANCELLED if held.cancelled else Kind.GIVEN_BACK
        leave = drop if held.admission.is_kept else requeue
        self._outcomes.settle(held, held.report(kind), functools.partial(leave, held.request))

    def _withdraw(self, held: AdmittedRun) -> bool:
        """Take a run back from the pool; False if a child has read it."""
        children = children_of(self._pool)
        if children is None or not children.withdraw(held.job):
            return False
        self._release_slot()
        return True
