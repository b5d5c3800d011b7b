"""A pool of processes whose children wait less: written to and read from at once.

Celery's writes a job to a free child one turn of the loop after it has been handed in, in two
pieces, and reads one word of a child a turn. With short tasks the children wait for all this. It
also forgets what a child was sent when a connection is lost; this one remembers.
"""

from __future__ import annotations

import fcntl
import logging
import select
import struct
import termios
from collections.abc import Callable, Generator
from typing import Any, Final

from celery.concurrency import asynpool

logger = logging.getLogger(__name__)

WORDS_A_TURN: Final = 8
_NONE: Final = struct.pack("i", 0)


class ResultHandler(asynpool.ResultHandler):
    """Reads what a child has said: that it has accepted a job, and what became of it."""

    def _make_process_result(self, hub: Any) -> Callable[[int], None]:
        read_one = super()._make_process_result(hub)

        def on_result_readable(fd: int) -> None:
            read_one(fd)
            for _ in range(WORDS_A_TURN - 1):
                # Not when the child is gone, or half of a word is here: then the rest is awaited.
                if hub.readers.get(fd) != (self.handle_event, (fd,)) or not _has_bytes(fd):
                    break
                read_one(fd)

        return on_result_readable

    def _recv_message(
        self, add_reader: Callable[..., None], fd: int, callback: Callable[..., None]
    ) -> Generator[None, None, None]:
        def add_unless_there(fd: int, reader: Callable[..., None], *args: Any) -> None:
            if self._hub.readers.get(fd) != (reader, args):
                add_reader(fd, reader, *args)

        return super()._recv_message(add_unless_there, fd, callback)


class Pool(asynpool.AsynPool):
    """Celery's pool for its event loop."""

    ResultHandler = ResultHandler
    _quick_put: Callable[[Any], None]
    _put_back: Callable[[Any], None]

    def on_job_ready(self, job: Any, i: Any, obj: Any, inqueue: int) -> None:
        """Have a child free again, unless this was its last job (`--max-tasks-per-child`).

        One that is about to be replaced would be sent another, which then waits for its end.
        """
        child = self._fileno_to_inq.get(inqueue)
        if child is not None and self._maxtasksperchild:
            child.done_count = getattr(child, "done_count", 0) + 1
            if child.done_count >= self._maxtasksperchild:
                return
        super().on_job_ready(job, i, obj, inqueue)

    def _create_write_handlers(self, hub: Any, *args: Any, **kwargs: Any) -> None:
        super()._create_write_handlers(hub, *args, **kwargs)
        put: Callable[[Any], None] = self._quick_put
        put_back: Callable[[Any], None] = self._put_back
        write_to = hub.consolidate_callback

        def put_and_write(call: Any) -> None:
            put(call)
            _join(self._cache[call[1][0]])
            free = self._all_inqueues - self._busy_workers - self._active_writes
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

        self._quick_put, self._put_back = put_and_write, put_back_for_any

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


def _join(job: Any) -> None:
    """Have a job written in one piece, where a pipe takes that as a whole or not at all.

    Of two pieces, the first would wake its child, which would then often wait for the second.
    """
    length, text, size = job._payload
    if len(length) + size <= select.PIPE_BUF:
        job._payload = memoryview(bytes(length) + bytes(text)), memoryview(b""), 0


def _has_bytes(fd: int) -> bool:
    try:
        return fcntl.ioctl(fd, termios.FIONREAD, _NONE) != _NONE
    except OSError:
        return False
