"""The gate: between the consumer and the pool.

A hint waits here until its row is admitted; then Celery goes on with the payload from the
row. What does not start in time is handed back. What starts is the affair of `outcomes`.
Plain tasks pass untouched.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from billiard.pool import EX_OK, EX_RECYCLE
from celery.exceptions import TaskRevokedError
from celery.worker.request import Request

from fleet.contract import HEADER, Admission, Application, Kind, Refusal, is_hint
from fleet.crash_points import crash_point
from fleet.pool import children_of, has_reached, was_sent
from fleet.worker.admitted import AdmittedRun, admission_request_of, apply_admission, facts_of
from fleet.worker.child import traced
from fleet.worker.events import BareEvents
from fleet.worker.io_thread import IOThread
from fleet.worker.outcomes import Outcomes, drop, requeue

logger = logging.getLogger(__name__)

BUSY_SECONDS: Final = 0.5


class Gate:
    """What one worker node holds, and the hooks that Celery calls on the way in."""

    def __init__(self, application: Application, io_thread: IOThread, *, slots: int = 1) -> None:
        self._application = application
        self._io_thread = io_thread
        self._slots = slots
        self._requires_row = functools.cache(application.requires_row)
        self._held: dict[str, AdmittedRun] = {}
        self._outcomes = Outcomes(application, io_thread, self._held)
        self._closing = False
        self._pool_is_closed = False

    # --- in: from the consumer ---------------------------------------------------------

    def attach(self, worker: Any) -> None:
        """Stand between this worker's consumer and its pool, before strategies are built."""
        self._pool = worker.pool
        self._later = worker.timer.call_after
        self._forward = worker.consumer.on_task_request
        self._pool_apply = worker.pool.apply_async.hand_in
        self._release_slot = getattr(worker, "_quick_release", _nothing)
        self._outcomes.attach(worker)
        worker.consumer.on_task_request = self.on_request
        worker.pool.apply_async.gate = self.apply_async
        children: Any = getattr(worker.pool, "_pool", None)
        if hasattr(children, "on_partial_read"):
            children.on_partial_read = functools.partial(
                self._child_gone, children, children.on_partial_read
            )

    def on_request(self, request: Request) -> None:
        """Take a message: a plain task goes on, a hint waits for its admission."""
        if not is_hint(request.request_dict):
            if self._requires_row(request.type):
                logger.warning("dropped %s[%s]: it runs only with a row", request.name, request.id)
                drop(request)
            else:
                self._forward(request)
            return
        request.eventer = BareEvents(request.eventer)
        admission_request = admission_request_of(request.request_dict)
        if admission_request is None:
            drop(request)
            return
        if self._closing:
            requeue(request)
            return
        # With a run in each slot and another behind it, there is time to gather.
        is_urgent = self._outcomes.open_count < 2 * self._slots
        answer = functools.partial(self._answer, request)
        if admission_request.job is None:
            if not self._io_thread.request_admission(
                admission_request, answer, is_urgent=is_urgent
            ):
                drop(request)
        elif admission_request.key in self._held or not self._io_thread.request_admission(
            admission_request, answer, is_urgent=is_urgent
        ):
            # The same message, after a lease that ran out: what is dropped comes no more.
            self._requeue_later(request)

    def _child_gone(self, children: Any, put_back: Any, job: Any, child: Any) -> None:
        """Deal with a run that was sent to a child which ended before it accepted it.

        Celery sends it to another child. But one that died may have begun it: its word can be
        lost with it, and the body would run twice under one token. So the attempt is lost.
        """
        is_ours = any(held.job is job for held in self._held.values())
        has_died = child.exitcode not in (EX_OK, EX_RECYCLE)
        if is_ours and has_died and not job._accepted and has_reached(child, job):
            job._accepted = True
            put_back(job, child)
            children.on_job_process_lost(job, child.pid, child.exitcode)
        else:
            put_back(job, child)

    def _answer(self, request: Request, verdict: Admission | Refusal, asked_at: float) -> None:
        if verdict is Refusal.BUSY:
            self._requeue_later(request)
        elif isinstance(verdict, Refusal):
            drop(request)
        else:
            # The start deadline counts from the question: a process may be frozen after it.
            held = AdmittedRun(verdict, request, asked_at)
            self._held[verdict.key] = held
            self._outcomes.open_count += 1
            if self._closing:
                self._hand_back(held)
            else:
                self._begin(held)

    def _requeue_later(self, request: Request) -> None:
        """Give a message back, not at once: it would come, and ask again, all the time."""
        self._later(BUSY_SECONDS, requeue, (request,))

    def _begin(self, held: AdmittedRun) -> None:
        try:
            apply_admission(held.request, held.admission)
        except Exception as error:
            # Arguments of a type that only the submitting process could write, say.
            self._outcomes.unreadable(held, error)
        else:
            self._forward(held.request)

    # --- through: to the pool ----------------------------------------------------------

    def apply_async(self, target: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
        """Hand a task to the pool; an admitted one only past its start gate."""
        facts = facts_of(args)
        if facts is None:
            return self._pool_apply(target, args, kwargs, **options)
        held = self._held.get(facts["key"])
        if held is None or held.settled or held.request.request_dict is not args[2]:
            # It waited for a slot and was handed back meanwhile; what is held now may be the same
            # message, come again. Celery's worker frees the slot on this error, and on no other.
            raise TaskRevokedError(facts["run"])
        if held.cancelled or held.is_late:
            self._hand_back(held)
            raise TaskRevokedError(facts["run"])
        # The pool's child may be slow to begin, or frozen: it looks once more. But not where no
        # row would bring the run again.
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
        held.job = self._pool_apply(traced, args, kwargs, **{**held.options, **callbacks})
        if hasattr(held.job, "_write_to"):
            held.job.on_unread = functools.partial(self._outcomes.on_unread, held)
        return held.job

    def _start_recorded(
        self, held: AdmittedRun, into_pool: Callable[[], Any], state: str | None
    ) -> None:
        """Go on with a run whose start is committed."""
        held.is_starting, held.is_recorded = False, state == "running"
        held.cancelled = held.cancelled or state == "cancelling"
        may_begin = held.is_recorded and not held.cancelled and not held.is_late
        if may_begin and not self._pool_is_closed:
            job, children = into_pool(), children_of(self._pool)
            if children and children.release_early(job):
                self._release_slot()
        else:
            self._release_slot()
            self._hand_back(held)

    # --- back: cancelled, or not started -----------------------------------------------

    def held(self) -> list[str]:
        """Return the ids of all runs that this worker was given and that are not yet recorded.

        Without those of which nothing is recorded.
        """
        return [key for key, held in list(self._held.items()) if held.admission.is_kept]

    def cancel(self, run_id: str) -> None:
        """Stop a run of this worker: at the start gate, else softly and after a grace for good."""
        held = self._held.get(run_id)
        if held is None or held.cancelled or held.settled:
            return
        held.cancelled = True
        if held.started_at is not None:
            self._outcomes.stop(held)

    def hand_back_late(self) -> None:
        """Hand back what did not begin in time: no slot, no child, or a lost connection."""
        for held in list(self._held.values()):
            if held.is_late and (not held.in_pool or self._withdraw(held)):
                self._hand_back(held)

    def waiting_in_pool(self) -> list[AdmittedRun]:
        """Return the runs that are in the pool and that no child has accepted yet."""
        return [
            held
            for held in self._held.values()
            if held.in_pool and held.started_at is None and not (held.settled or held.is_starting)
        ]

    def reclaim(self, waiting: Sequence[AdmittedRun]) -> int:
        """Hand back what no child was sent, and the pool has forgotten with a lost connection.

        And what has no row, and no slot yet: its message comes again, here perhaps. Returns how
        many slots are taken by jobs.
        """
        for held in waiting:
            if not was_sent(held.job):
                self._hand_back(held)
        for held in list(self._held.values()):
            if not held.in_pool and not held.admission.is_kept:
                self._hand_back(held)
        # A run may be held longer than its job: that has ended, and its slot is free, before the
        # row says so.
        jobs = getattr(getattr(self._pool, "_pool", None), "_cache", {})
        return self.starting_count + sum(not job.ready() for job in jobs.values())

    @property
    def starting_count(self) -> int:
        """How many have a slot and wait until their start is recorded."""
        return sum(held.is_starting for held in self._held.values())

    def close(self) -> None:
        """Admit nothing more; hand back what no child has, nor is about to."""
        self._closing = True
        if children := children_of(self._pool):
            children.recall()
        for held in list(self._held.values()):
            if not held.in_pool or self._withdraw(held):
                self._hand_back(held)

    def pool_closes(self) -> None:
        """Put nothing more into the pool: it would be lost there without a word."""
        self.close()
        self._pool_is_closed = True

    def _hand_back(self, held: AdmittedRun) -> None:
        """Return an admitted run that did not start; or end it, when it was cancelled.

        Its row publishes another hint; where there is none, this message is the only one.
        """
        if held.is_recorded and not held.cancelled:
            self._outcomes.try_again(held)
            return
        kind = Kind.CANCELLED if held.cancelled else Kind.GIVEN_BACK
        leave = drop if held.admission.is_kept else requeue
        self._outcomes.settle(held, held.report(kind), functools.partial(leave, held.request))

    def _withdraw(self, held: AdmittedRun) -> bool:
        """Take a run back from the pool; False when a child has it, or is about to."""
        pool = getattr(self._pool, "_pool", None)
        waiting = getattr(pool, "outbound_buffer", None)
        if waiting is None or held.job not in waiting:
            return False
        waiting.remove(held.job)
        held.job.discard()
        self._release_slot()
        return True


def _nothing() -> None:
    """Release no slot: pools without a semaphore count none."""
