"""A pool of processes whose children wait less: written to and read from at once.

Celery's writes a job to a free child one turn of the loop after it has been handed in, in two
pieces, waits to be told that it was taken, and reads one word of a child a turn. With short tasks
the children wait for all this. It also forgets what a child was sent when a connection is lost, and
looks for a child that has died every 5 s; this one remembers, and looks.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final

from billiard.pool import ACK
from celery.concurrency import asynpool

from fleet.pipes import AT_ONCE, READ_SIZE, Worker, framed, missing, unframed

logger = logging.getLogger(__name__)

REAP_SECONDS: Final = 0.02
REAP_LOOKS: Final = 50
AHEAD_SECONDS: Final = 0.02
"""Behind a job that runs for longer, none waits in its child."""


class Slots:
    """The semaphore of a worker's slots, of which one can be free before its job has ended."""

    def __init__(self, semaphore: Any) -> None:
        self._semaphore = semaphore
        self.is_free = False
        """The slot of the job that ends has another job by now."""

    def release(self) -> None:
        if self.is_free:
            self.is_free = False
        elif self._semaphore is not None:
            self._semaphore.release()


class ResultHandler(asynpool.ResultHandler):
    """Reads what children have said: that they have accepted a job, and what became of it."""

    def _make_methods(self) -> None:
        self.putlock = self.slots = Slots(self.putlock)
        super()._make_methods()

    def _make_process_result(self, hub: Any) -> Callable[[int], None]:
        children = self.fileno_to_outq

        def on_result_readable(fd: int) -> None:
            if fd not in children:
                hub.remove_reader(fd)
                return
            try:
                text = os.read(fd, READ_SIZE)
            except BlockingIOError:
                return
            except OSError:
                text = b""
            if not text:
                hub.remove_reader(fd)
                return
            words, left = unframed(text)
            if left:
                # Celery's ways to end know a reader that is a generator: they wait for the rest.
                hub.add_reader(fd, self._rest(hub, fd, left))
            self._hear(deque(words))

        return on_result_readable

    def _hear(self, words: deque[Any]) -> None:
        """Deal with all that a child has said, also when one of it ends this worker."""
        try:
            while words:
                self.on_state_change(words.popleft())
        finally:
            if words:
                self._hear(words)

    def _rest(self, hub: Any, fd: int, text: bytes) -> Generator[None, None, None]:
        """Read the rest of a word of which a part is here, and not a byte more."""
        while size := missing(text):
            try:
                more = os.read(fd, size)
            except BlockingIOError:
                yield
                continue
            if not more:
                raise EOFError
            text += more
        hub.add_reader(fd, self.handle_event, fd)
        self._hear(deque(unframed(text)[0]))


class Pool(asynpool.AsynPool):
    """Celery's pool for its event loop."""

    ResultHandler = ResultHandler
    Worker = Worker
    _quick_put: Callable[[Any], None]
    _put_back: Callable[[Any], None]

    _is_short = False
    _written: Any = None
    _ahead_until = 0.0

    def apply_async(
        self, func: Any, args: Any = (), kwds: Any = None, *, is_short: bool = False, **options: Any
    ) -> Any:
        """Hand in a job; while a short one runs its child may have another in hand."""
        self._is_short = is_short
        return super().apply_async(func, args, kwds or {}, **options)

    def on_job_ready(self, job: Any, i: Any, obj: Any, inqueue: int) -> None:
        """Have a child free again, unless this was its last job (`--max-tasks-per-child`).

        One that is about to be replaced would be sent another, which then waits for its end.
        """
        child = self._fileno_to_inq.get(inqueue)
        if child is None:
            return
        ended, child.current = child.current, None
        slots = self._result_handler.slots
        slots.is_free = getattr(ended, "is_slot_free", False)
        if child.ahead is not None:
            following, child.ahead = child.ahead, None
            self._accept(following, child)
            if following.is_short:
                following.is_slot_free, slots.is_free = True, False
            return
        if self._maxtasksperchild:
            child.done_count = getattr(child, "done_count", 0) + 1
            if child.done_count >= self._maxtasksperchild:
                return
        super().on_job_ready(job, i, obj, inqueue)

    def frees_slot(self) -> bool:
        """Say whether the job that was just handed in is short: its slot may have another."""
        job, self._written = self._written, None
        if job is None or not job.is_short or job.is_slot_free or self._maxtasksperchild:
            return False
        job.is_slot_free = True
        return True

    # --- writing -----------------------------------------------------------------------

    def _create_write_handlers(self, hub: Any, *args: Any, **kwargs: Any) -> None:
        super()._create_write_handlers(hub, *args, **kwargs)
        put: Callable[[Any], None] = self._quick_put
        put_back: Callable[[Any], None] = self._put_back
        look: Callable[[], None] = self.on_poll_start
        write_to = hub.consolidate_callback
        has_looked = False

        def put_and_write(call: Any) -> None:
            free = self._all_inqueues - self._busy_workers - self._active_writes
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
            put_back(job)
            # Celery knows a child by the number of its pipe, and the next one may get the same:
            # it would pass for the one that has this job.
            job._write_to = job._scheduled_for = None

        def look_for_work() -> None:
            # Without work once, to let go of the pipes; not at every turn, to let go of nothing.
            nonlocal has_looked
            if self.outbound_buffer or has_looked:
                has_looked = bool(self.outbound_buffer)
                look()

        self._quick_put, self._put_back = put_and_write, put_back_for_any
        self.on_poll_start = look_for_work

    def _write_at_once(self, call: Any, free: set[int]) -> bool:
        """Write a job to a child that waits for one, or soon will; False if that can't be.

        Only what a pipe takes as a whole or not at all: half a job could not be told from one.
        """
        child = self._fileno_to_inq.get(free.pop()) if free else self._soon_free()
        if child is None:
            return False
        kind, (number, _part, *what) = call
        text = framed((kind, (number, AT_ONCE, *what)))
        if len(text) > select.PIPE_BUF:
            return False
        try:
            os.write(child.inqW_fd, text)
        except OSError:
            return False
        job = self._cache[number]
        job._write_to = job._scheduled_for = child
        job.call, job.is_short, job.is_slot_free = call, self._is_short, False
        self._busy_workers.add(child.inqW_fd)
        self.write_stats[child.index] += 1
        if child.current is None:
            self._written = job
            self._accept(job, child)
        else:
            child.ahead = job
        return True

    def _soon_free(self) -> Any:
        """Return the child that will be first to end a short job, if any has but that."""
        after = time.monotonic() - AHEAD_SECONDS
        soon = [
            child
            for child in self._fileno_to_inq.values()
            if child.current is not None
            and child.ahead is None
            and child.current.is_short
            and child.current._time_accepted > after
        ]
        return min(soon, key=lambda child: child.current._time_accepted, default=None)

    def _accept(self, job: Any, child: Any) -> None:
        """Take a job for accepted: its child does nothing else now but this job."""
        child.current = job
        taken = job._job, AT_ONCE, time.monotonic(), child.pid, child.synqW_fd
        self._result_handler.on_state_change((ACK, taken))

    # --- children that end -------------------------------------------------------------

    def _event_process_exit(self, hub: Any, proc: Any, looks: int = REAP_LOOKS) -> None:
        """Replace a child, whose pipe closes a moment before it can be reaped."""
        super()._event_process_exit(hub, proc)
        if proc in self._pool and looks:
            hub.call_later(REAP_SECONDS, self._event_process_exit, hub, proc, looks - 1)

    def on_job_process_lost(self, job: Any, pid: int, exitcode: int) -> None:
        """Deal with a job of a child that has ended: it goes to another, if this one never read it.

        Of a child that ends by itself, or because of the job before, that is no fault of this job.
        """
        child, call = job._write_to, getattr(job, "call", None)
        if call is None or child is None or child.begun.job == job._job:
            super().on_job_process_lost(job, pid, exitcode)
            return
        if self.on_timeout_cancel is not None:
            self.on_timeout_cancel(job)
        job._accepted, job._worker_pid, job.call = False, None, None
        header, text, size = self._create_payload(*call)
        job._payload = memoryview(header), memoryview(text), size
        unread = getattr(job, "unread", None)
        if unread is not None:
            unread()
        self._put_back(job)

    def flush(self) -> None:
        """Forget what no child was sent; Celery also forgets what one was, and who is busy.

        What was sent to a child will run: without this nobody would hear of its end, its message
        would be held as long as the worker lives, and at a warm stop that child would wait 30 s
        for a word. What was not sent, or whose child has died, is somebody else's.
        """
        jobs = list(self._cache.values())
        super().flush()
        for job in jobs:
            # Without a way back it is of a stock queue, whose broker delivers it again.
            give_back = getattr(job, "give_back", None)
            if job.ready():
                continue
            if was_sent(job):
                if job._accepted or give_back:
                    self._cache[job._job] = job
                    self._busy_workers.add(job._write_to.inqW_fd)
            elif give_back and not job._accepted:
                give_back()


def was_sent(job: Any) -> bool:
    """Whether a child that lives was sent this job, and will run it."""
    child = getattr(job, "_write_to", None)
    return child is not None and child._is_alive()
