"""The messages between a pool and its children: one system call each, and fewer of them.

Celery's child reports that it has accepted a job, which costs as much as a short task. Here the
pool counts a job as accepted when it has written it to a free child. Shared memory says which job a
child has read last; that matters only if the child dies.
"""

from __future__ import annotations

import fcntl
import gc
import mmap
import os
import pickle
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from inspect import isgenerator
from typing import Any, Final

from billiard.pool import ACK
from celery.concurrency import asynpool

from fleet.callbacks import guarded
from fleet.pool import soft_stop, stacks
from fleet.pool.copies import end_copy_of

AT_ONCE: Final = -1
"""In place of a job's part number (for maps): its child need not report that it has accepted it."""

COLLECT_AT: Final = gc.get_threshold()
"""The thresholds before the worker set its own: the children run the user's code."""
NONE: Final = -1
NO_JOB: Final = -2
"""In place of the job to stop: matches no job, and not NONE before the first one is read."""
PIECES: Final = 32
"""The jobs for which a child's pipe has room: twice the default of a pipe on Linux."""
READ_SIZE: Final = 16_384
PARTIAL_SECONDS: Final = 10.0
"""How long a child that lives has for the rest of a result; a stopped one takes longer."""
_LENGTH: Final = struct.Struct(">i")
_BEGUN: Final = struct.Struct("=qq")
_ASKED: Final = struct.Struct("=q")


def framed(message: Any) -> bytes:
    """Return a message as it goes through a pipe: its length in 4 bytes, then its pickle."""
    text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(text)) + text


def framed_whole(message: Any) -> bytes:
    """Return a message padded to PIPE_BUF, which pipes write and read as a whole; b"" if longer.

    A read of that size gets exactly one message. Pickle ignores the padding.
    """
    text = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    size = select.PIPE_BUF - _LENGTH.size
    return _LENGTH.pack(size) + text.ljust(size, b"\0") if len(text) <= size else b""


def unframed(text: bytes) -> tuple[list[Any], bytes]:
    """Return the complete messages in these bytes, and the rest."""
    messages, at, view = [], 0, memoryview(text)
    while at + _LENGTH.size <= len(text):
        begin = at + _LENGTH.size
        end = begin + _LENGTH.unpack_from(text, at)[0]
        if end > len(text):
            break
        messages.append(pickle.loads(view[begin:end]))  # noqa: S301  from our own children
        at = end
    return messages, text[at:]


def missing(text: bytes) -> int:
    """Return how many more bytes a partial message needs, as far as is known."""
    if len(text) < _LENGTH.size:
        return _LENGTH.size - len(text)
    return _LENGTH.size + int(_LENGTH.unpack_from(text)[0]) - len(text)


class LastRead:
    """Memory that a child shares with its pool: the last job it has read, and the job to stop.

    Jobs are known by their numbers. `reader` is the process that has read it: the child, or a copy
    that a task has forked.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, _BEGUN.size + _ASKED.size)
        # The first job of all has the number 0.
        self.note(NONE)
        self.ask_to_stop(NO_JOB)

    @property
    def job(self) -> int:
        return int(_BEGUN.unpack_from(self._shared)[0])

    @property
    def reader(self) -> int:
        return int(_BEGUN.unpack_from(self._shared)[1])

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether the job to stop is the last one that was read."""
        return bool(_ASKED.unpack_from(self._shared, _BEGUN.size)[0] == self.job)

    def note(self, job: int) -> None:
        """Note, in the child, that it has read this job."""
        _BEGUN.pack_into(self._shared, 0, job, os.getpid())

    def ask_to_stop(self, job: int) -> None:
        """Note, in the main process, which job the next soft signal is for."""
        _ASKED.pack_into(self._shared, _BEGUN.size, job)


def ask_to_stop(child: Any, job: Any) -> None:
    """Note which job the next soft signal to this child is for."""
    last_read = getattr(child, "last_read", None)
    if last_read is not None:
        last_read.ask_to_stop(job._job)


def has_read(child: Any, job: Any) -> bool:
    """Say whether this is the last job that a child has read; true if the pool cannot know."""
    last_read = getattr(child, "last_read", None)
    return last_read is None or last_read.job == job._job


def reader_of(child: Any, job: Any) -> int | None:
    """Return the process that has this job; None if it is not the last one that it has read."""
    last_read = getattr(child, "last_read", None)
    if last_read is None or last_read.job != job._job:
        return None
    return int(last_read.reader)


class Worker(asynpool.Worker):
    """A child's loop, which reads and writes each message with one call.

    The pool stores here the child's current job, and those that wait in its pipe (`ahead`).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Before the fork, so that both processes share it.
        self.last_read = LastRead()
        self.stack_file = stacks.stack_file()
        self._is_plain = False
        super().__init__(*args, **kwargs)
        # Refused if the user has too many pipes: then fewer jobs wait in this one.
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self.inq._writer, fcntl.F_SETPIPE_SZ, PIECES * select.PIPE_BUF)

    def contribute_to_object(self, obj: Any) -> Any:
        obj.last_read, obj.stack_file = self.last_read, self.stack_file
        obj.current, obj.ahead = None, deque()
        obj.has_booted = False
        return super().contribute_to_object(obj)

    def on_loop_start(self, pid: int) -> None:
        """Begin to work, with our own `outq.put`."""
        super().on_loop_start(pid)
        gc.set_threshold(*COLLECT_AT)
        stacks.install(self.stack_file)
        soft_stop.install(lambda: self.last_read.is_asked_to_stop)
        self.outq.put = self._make_put(self.outq.put, self.outq._writer.fileno(), pid)

    def _make_recv_method(self, conn: Any) -> Callable[[float | None], tuple[bool, Any]]:
        if conn is not self.inq:
            return super()._make_recv_method(conn)
        fd, messages, left = conn._reader.fileno(), deque[Any](), b""

        def receive(_timeout: float | None) -> tuple[bool, Any]:
            nonlocal left
            while not messages:
                text = os.read(fd, missing(left) if left else select.PIPE_BUF)
                if not text:
                    raise EOFError
                found, left = unframed(left + text)
                messages.extend(found)
            message = messages.popleft()
            if message is not None:
                _kind, (job, _part, function, *_what) = message
                self.last_read.note(job)
                self._is_plain = not hasattr(function, "stops_in_body")
            return True, message

        return receive

    def _make_put(self, put: Callable[[Any], None], fd: int, pid: int) -> Callable[[Any], None]:
        """Return the `put` of child `pid`, which omits what the pool knows."""

        def put_message(message: Any) -> None:
            # First: a soft signal must not interrupt the write.
            soft_stop.allow(anywhere=False)
            # For a copy that did not end with `run`, such as one forked by a signal handler: it
            # gets here before it can read a job.
            end_copy_of(pid)
            kind, facts = message
            if kind != ACK or facts[1] != AT_ONCE:
                self._write(put, fd, message)
            if kind == ACK:
                # The child calls the job's function next.
                soft_stop.allow(anywhere=self._is_plain)

        return put_message

    def _write(self, put: Callable[[Any], None], fd: int, message: Any) -> None:
        try:
            text = framed(message)
        except Exception:
            # Celery's own can write more types, or raises a better error.
            put(message)
            return
        while text:
            text = text[os.write(fd, text) :]


class ResultHandler(asynpool.ResultHandler):
    """Reads the messages of children: accepted jobs, and results."""

    def _make_process_result(self, hub: Any) -> Callable[[int], None]:
        self._readers = hub.readers
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
            messages, left = unframed(text)
            if left:
                # A generator: at its end, Celery waits for such readers to finish.
                hub.add_reader(fd, self._rest(hub, fd, left))
            self._handle_messages(deque(messages))

        return guarded(on_result_readable, "ResultHandler.on_result_readable")

    def finish_partial_read(self, fd: int, child: Any) -> bool:
        """Read the rest of a child's partial result; True if the child does not write it."""
        rest, _ = self._readers.get(fd, (None, ()))
        ends_at = time.monotonic() + PARTIAL_SECONDS
        while isgenerator(rest):
            try:
                next(rest)
                is_readable = child.outq._reader.poll(1.0)
            except StopIteration:
                return False
            except (OSError, EOFError):
                return True
            if not is_readable and (time.monotonic() > ends_at or not child._is_alive()):
                return True
        return False

    def _flush_outqueue(
        self, fd: int, remove: Callable[[int], Any], children: Any, *arguments: Any
    ) -> Any:
        """Read the last results of a child; Celery before 5.7 reads the rest as a new one."""
        if fd in children and self.finish_partial_read(fd, children[fd]):
            return remove(fd)
        return super()._flush_outqueue(fd, remove, children, *arguments)

    def _handle_messages(self, messages: deque[Any]) -> None:
        """Handle all messages of a child, even if one of them raises to end this worker."""
        try:
            while messages:
                self.on_state_change(messages.popleft())
        finally:
            if messages:
                self._handle_messages(messages)

    def _rest(self, hub: Any, fd: int, text: bytes) -> Generator[None, None, None]:
        """Read the rest of a partial message, and no byte more."""
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
        self._handle_messages(deque(unframed(text)[0]))
