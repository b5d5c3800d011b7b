"""A prefork pool with lower latency: jobs are written to children without a loop turn, results
are read in batches, and short jobs are queued in the child's pipe in advance.

Celery's pool writes a job one turn of the loop after it was handed in, in two pieces, waits for the
child's acknowledgement, and reads one message of a child a turn. With short tasks, children wait
for this; here the next jobs are in their pipes (`lookahead.py`). Celery's pool also drops sent jobs
when a connection is lost, and notices a dead child within 5 s; this one does neither (`losses.py`).
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from billiard.pool import ACK, READY
from celery.concurrency import asynpool

from fleet import log_events
from fleet.callbacks import guarded
from fleet.pool.lookahead import has_room
from fleet.pool.losses import Losses
from fleet.pool.pipes import AT_ONCE, ResultHandler, Worker, ask_to_stop, framed_whole

logger = logging.getLogger(__name__)


class Slots:
    """The semaphore of a worker's slots; a slot may be released before its job has ended."""

    def __init__(self, semaphore: Any) -> None:
        self._semaphore = semaphore
        self.early = 0
        """Slots that were released early; that many later releases are ignored."""

    def release(self) -> None:
        if self.early:
            self.early -= 1
        else:
            self._semaphore.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._semaphore, name)


class Pool(Losses):
    """Celery's pool for its event loop."""

    ResultHandler = ResultHandler
    Worker = Worker
    _quick_put: Callable[[Any], None]
    on_poll_start: Callable[[], None]
    _expected = math.inf

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # With `-O fast`, Celery itself writes several jobs into a pipe.
        self._is_fair = self.sched_strategy == asynpool.SCHED_STRATEGY_FAIR
        # Jobs can be taken back only if a pipe can be opened a second time.
        can_take_back = self._is_fair and os.path.isdir("/proc/self/fd")
        self._may_go_ahead = can_take_back and not self._maxtasksperchild
        signal_softly, kill = self.on_soft_timeout, self.on_hard_timeout
        self._unread = {}

        def on_soft_timeout(job: Any) -> None:
            if self.is_unread(job):
                self._hub.call_soon(guarded(self._limit_again), job)
                return
            ask_to_stop(job._write_to, job)
            signal_softly(job)

        def on_hard_timeout(job: Any) -> None:
            if self.is_unread(job):
                self._hub.call_soon(guarded(self._limit_again), job)
            else:
                kill(job)

        self.on_soft_timeout: Callable[[Any], None] = on_soft_timeout
        self.on_hard_timeout: Callable[[Any], None] = on_hard_timeout

    def _limit_again(self, job: Any) -> None:
        """Begin the time limits of a job again: its child had not read it."""
        if job._accepted and not job.ready():
            self.on_timeout_cancel(job)
            self.on_timeout_set(job, job._soft_timeout, job._timeout)

    def create_result_handler(self) -> Any:
        self._putlock = Slots(self._putlock)
        handler = super().create_result_handler()
        on_ready = handler.state_handlers[READY]

        def on_ready_and_next(*message: Any) -> None:
            try:
                on_ready(*message)
            finally:
                # Afterwards: Celery counts a child's results until it accepts the next job.
                following, self._following = self._following, None
                if following is not None:
                    self._accept(*following)

        handle = handler._handle_messages

        def handle_and_write(messages: deque[Any]) -> None:
            self._batch = self._batch or {}
            try:
                handle(messages)
            finally:
                self._write_batch()

        handler.state_handlers[READY] = on_ready_and_next
        handler._handle_messages = handle_and_write
        return handler

    # --- in ----------------------------------------------------------------------------

    def apply_async(
        self,
        func: Any,
        args: Any = (),
        kwds: Any = None,
        *,
        expected: float = math.inf,
        **options: Any,
    ) -> Any:
        """Hand in a job that is expected to take this many seconds.

        It may wait in the pipe of a child that runs a short job.
        """
        self._expected = expected
        return super().apply_async(func, args, kwds or {}, **options)

    def release_early(self, job: Any) -> bool:
        """Return True, once, if the job's slot can be reused: its child has room for another."""
        if not hasattr(job, "expected") or job.ready() or job._write_to is None:
            return False
        if job.is_slot_free or not self._may_go_ahead:
            return False
        job.is_slot_free = has_room(job._write_to)
        return bool(job.is_slot_free)

    def set_early_releases(self, count: int) -> None:
        """Note how many more jobs than slots there are: that many ends free no slot."""
        self._putlock.early = count

    def _create_write_handlers(self, hub: Any, *args: Any, **kwargs: Any) -> None:
        super()._create_write_handlers(hub, *args, **kwargs)
        put: Callable[[Any], None] = self._quick_put
        put_back: Callable[[Any], None] = self._put_back
        look = self.on_poll_start
        write_to = hub.consolidate_callback
        has_looked = False

        def put_and_write(call: Any) -> None:
            free = self._free()
            if not self.outbound_buffer and self._write_at_once(call, free):
                return
            put(call)
            if free:
                try:
                    # No more than there are jobs: without a job, Celery removes all pipes.
                    write_to(list(free)[: len(self.outbound_buffer)])
                except Exception:
                    # It may concern another job. The loop writes again.
                    log_events.JOB_NOT_WRITTEN.log(logger, exc_info=True)

        def put_back_for_any(job: Any) -> None:
            if not hasattr(job, "_payload"):
                header, text, size = self._create_payload(*job.call)
                job._payload = memoryview(header), memoryview(text), size
            put_back(job)
            # Celery knows a child by the number of its pipe, which the next child may get: it
            # would seem to have this job.
            job._write_to = job._scheduled_for = None

        def look_for_work() -> None:
            nonlocal has_looked
            if self._has_ahead and not self.outbound_buffer and (free := self._free()):
                self._share(free)
            # Without work only once, to remove the pipes from the loop.
            if self.outbound_buffer or has_looked:
                has_looked = bool(self.outbound_buffer)
                look()

        self._quick_put, self._put_back = put_and_write, put_back_for_any
        self.on_poll_start = guarded(look_for_work, "Pool.on_poll_start")

    def _free(self) -> set[int]:
        """Return the pipes of the children that have no job."""
        return self._all_inqueues - self._busy_workers - self._active_writes

    def _write_at_once(self, call: Any, free: set[int]) -> bool:
        """Write a job to a child that is free now or soon; False if there is none.

        Only a job that a pipe takes as a whole: a partial one could not be recognised.
        """
        child = self._fileno_to_inq.get(next(iter(free))) if free else self._soon_free()
        if child is None or not self._is_fair:
            return False
        kind, (number, _part, *what) = call
        text = framed_whole((kind, (number, AT_ONCE, *what)))
        job = self._cache[number]
        if not text or not self._write(job, text, child):
            return False
        job.call, job.expected, job.is_slot_free = call, self._expected, False
        if child.current is None:
            self._accept(job, child)
        else:
            child.ahead.append(job)
            self._has_ahead = True
            self._check_soon()
        return True

    def _accept(self, job: Any, child: Any) -> None:
        """Count a job as accepted: its child has no other."""
        child.current = job
        taken = job._job, AT_ONCE, time.monotonic(), child.pid, child.synqW_fd
        self._result_handler.on_state_change((ACK, taken))

    # --- out ---------------------------------------------------------------------------

    def on_job_ready(self, job: Any, i: Any, obj: Any, inqueue: int) -> None:
        """Have a child start the next job in its pipe, or be free.

        But not after its last job (`--max-tasks-per-child`): it is about to be replaced.
        """
        child, ended = self._fileno_to_inq.get(inqueue), self._cache.get(job)
        # Celery frees no slot for a job that is ready already.
        is_freed = ended is not None and not ended.ready() and getattr(ended, "is_slot_free", False)
        if child is not None and child.current is not None and child.current._job == job:
            if child.ahead:
                self._start_next(child, is_freed=is_freed)
                return
            child.current = None
        self._putlock.early += is_freed
        if child is not None and self._maxtasksperchild:
            child.done_count = getattr(child, "done_count", 0) + 1
            if child.done_count >= self._maxtasksperchild:
                return
        super().on_job_ready(job, i, obj, inqueue)


def children_of(pool: Any) -> Pool | None:
    """Return the processes of a worker's pool if it is of this kind, else None."""
    children = getattr(pool, "_pool", None)
    return children if isinstance(children, Pool) else None
