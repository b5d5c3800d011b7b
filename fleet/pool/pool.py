"""A prefork pool with lower latency: jobs are written to children without a loop turn, results
are read in batches, and short jobs are queued in the child's pipe in advance.

Celery's writes a job to a free child one turn of the loop after it has been handed in, in two
pieces, waits to be told that it was taken, and reads one word of a child a turn. With short tasks
the children wait for all this; here they also have the next ones in hand while short ones run
(`lookahead.py`). Celery's pool also forgets what a child was sent when a connection is lost, and
looks for a child that has died every 5 s; this one remembers, and looks (`losses.py`).
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

from fleet.pool.lookahead import has_room
from fleet.pool.losses import Losses
from fleet.pool.pipes import AT_ONCE, ResultHandler, Worker, ask_to_stop, framed_whole

logger = logging.getLogger(__name__)


class Slots:
    """The semaphore of a worker's slots: one of them may be free before its job has ended."""

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
    _put_back: Callable[[Any], None]
    on_poll_start: Callable[[], None]
    on_process_down: Callable[[Any], None]
    _expected = math.inf

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # With `-O fast`, Celery writes to children that are at work: nothing is alone in a pipe.
        self._is_fair = self.sched_strategy == asynpool.SCHED_STRATEGY_FAIR
        # Where a pipe cannot be opened a second time, nothing written to it can be taken back.
        can_take_back = self._is_fair and os.path.isdir("/proc/self/fd")
        self._may_go_ahead = can_take_back and not self._maxtasksperchild
        signal_softly = self.on_soft_timeout

        def on_soft_timeout(job: Any) -> None:
            ask_to_stop(job._write_to, job)
            signal_softly(job)

        self.on_soft_timeout: Callable[[Any], None] = on_soft_timeout

    def create_result_handler(self) -> Any:
        self._putlock = Slots(self._putlock)
        handler = super().create_result_handler()
        on_ready = handler.state_handlers[READY]

        def on_ready_and_next(*word: Any) -> None:
            try:
                on_ready(*word)
            finally:
                # Not before: Celery counts what a child has ended up to the next that it takes.
                following, self._following = self._following, None
                if following is not None:
                    self._accept(*following)

        hear = handler._hear

        def hear_and_write(words: deque[Any]) -> None:
            self._batch = self._batch or {}
            try:
                hear(words)
            finally:
                self._write_batch()

        handler.state_handlers[READY] = on_ready_and_next
        handler._hear = hear_and_write
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
        """Hand in a job that is expected to take so many seconds.

        While short ones run, their child may have the next ones in hand.
        """
        self._expected = expected
        return super().apply_async(func, args, kwds or {}, **options)

    def release_early(self, job: Any) -> bool:
        """Say, once, that its child may have another job behind this one: its slot may be used."""
        if not hasattr(job, "expected") or job.ready() or job._write_to is None:
            return False
        if job.is_slot_free or not self._may_go_ahead:
            return False
        job.is_slot_free = has_room(job._write_to)
        return bool(job.is_slot_free)

    def set_early_releases(self, count: int) -> None:
        """Note how many more jobs than slots there are: so many of them free none at their end."""
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
                    # No more than there are jobs: Celery lets go of all pipes when it finds none.
                    write_to(list(free)[: len(self.outbound_buffer)])
                except Exception:
                    # It may be of another job than this one. The loop writes again.
                    logger.exception("a job could not be written at once")

        def put_back_for_any(job: Any) -> None:
            if not hasattr(job, "_payload"):
                header, text, size = self._create_payload(*job.call)
                job._payload = memoryview(header), memoryview(text), size
            put_back(job)
            # Celery knows a child by the number of its pipe, and the next one may get the same:
            # it would pass for the one that has this job.
            job._write_to = job._scheduled_for = None

        def look_for_work() -> None:
            nonlocal has_looked
            if self._has_ahead and not self.outbound_buffer and (free := self._free()):
                self._share(free)
            # Without work once, to let go of the pipes; not at every turn, to let go of nothing.
            if self.outbound_buffer or has_looked:
                has_looked = bool(self.outbound_buffer)
                look()

        self._quick_put, self._put_back = put_and_write, put_back_for_any
        self.on_poll_start = look_for_work

    def _free(self) -> set[int]:
        """Return the pipes of the children that have no job."""
        return self._all_inqueues - self._busy_workers - self._active_writes

    def _write_at_once(self, call: Any, free: set[int]) -> bool:
        """Write a job to a child that has none, or will soon have none; False if that can't be.

        Only what a pipe takes as a whole or not at all: half a job could not be told from one.
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
        """Take a job for accepted, whose child has nothing else to do."""
        child.current = job
        taken = job._job, AT_ONCE, time.monotonic(), child.pid, child.synqW_fd
        self._result_handler.on_state_change((ACK, taken))

    # --- out ---------------------------------------------------------------------------

    def on_job_ready(self, job: Any, i: Any, obj: Any, inqueue: int) -> None:
        """Have a child go on to the job that it has ahead, or be free.

        Not when this was its last job (`--max-tasks-per-child`): one that is about to be replaced
        would be sent another, which then waits for its end.
        """
        child, ended = self._fileno_to_inq.get(inqueue), self._cache.get(job)
        # Celery frees no slot for what it has dealt with already.
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
    """Return the processes of a worker's pool, if they are ours."""
    children = getattr(pool, "_pool", None)
    return children if isinstance(children, Pool) else None
