"""The words between a pool and its children: one system call for each, and one word less a job.

Celery's child says that it has taken a job, the pool reads that, and both cost as much as a short
task. The pool knows it when it has written a whole job to a child that has no other; whether the
child had come to read it matters only when that child has died, and then it stands in memory that
both share.
"""

from __future__ import annotations

import fcntl
import gc
import mmap
import os
import pickle
import select
import struct
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final

from billiard.pool import ACK
from celery.concurrency import asynpool

from fleet.pool import soft_stop
from fleet.pool.copies import end_copy_of

AT_ONCE: Final = -1
"""In a job's second place, where parts of a map have their number: its child need not say that it
has taken it."""

COLLECT_AT: Final = gc.get_threshold()
"""As it was before the worker had its own; this is the user's process."""
NONE: Final = -1
NO_JOB: Final = -2
"""The job that is to stop, when there is none: not even before the first is read."""
PIECES: Final = 32
"""So many jobs are to have room in a child's pipe: in twice what a pipe has on Linux."""
READ_SIZE: Final = 16_384
_LENGTH: Final = struct.Struct(">i")
_BEGUN: Final = struct.Struct("=qq")
_ASKED: Final = struct.Struct("=q")


def framed(word: Any) -> bytes:
    """Return a word as it goes through a pipe: 4 bytes of length, then so many of pickle."""
    text = pickle.dumps(word, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(text)) + text


def framed_whole(word: Any) -> bytes:
    """Return a word as the piece that pipes take, and give, as a whole; nothing for a longer one.

    All have one size, so that who reads so much gets one, and what is behind it stays there. What
    follows its end is nothing to pickle.
    """
    text = pickle.dumps(word, pickle.HIGHEST_PROTOCOL)
    size = select.PIPE_BUF - _LENGTH.size
    return _LENGTH.pack(size) + text.ljust(size, b"\0") if len(text) <= size else b""


def unframed(text: bytes) -> tuple[list[Any], bytes]:
    """Return the words that stand here whole, and what is left of the bytes."""
    words, at, view = [], 0, memoryview(text)
    while at + _LENGTH.size <= len(text):
        begin = at + _LENGTH.size
        end = begin + _LENGTH.unpack_from(text, at)[0]
        if end > len(text):
            break
        words.append(pickle.loads(view[begin:end]))  # noqa: S301  from our own children
        at = end
    return words, text[at:]


def missing(text: bytes) -> int:
    """Return how many more bytes a word that begins like this needs, as far as can be told."""
    if len(text) < _LENGTH.size:
        return _LENGTH.size - len(text)
    return _LENGTH.size + int(_LENGTH.unpack_from(text)[0]) - len(text)


class LastRead:
    """What a child and its pool share in memory: the last job that it has read, and one to stop.

    Jobs are known by their numbers. The reader's process id is another than the child's where a
    copy of the child has read the job.
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
        """Whether the job to stop is the one that was read last."""
        return bool(_ASKED.unpack_from(self._shared, _BEGUN.size)[0] == self.job)

    def note(self, job: int) -> None:
        """Write down, as a child, that it has read this job."""
        _BEGUN.pack_into(self._shared, 0, job, os.getpid())

    def ask_to_stop(self, job: int) -> None:
        """Write down, as its pool, which job the next soft signal is meant for."""
        _ASKED.pack_into(self._shared, _BEGUN.size, job)


def ask_to_stop(child: Any, job: Any) -> None:
    """Say which job the soft signal is for that is sent to this child next."""
    last_read = getattr(child, "last_read", None)
    if last_read is not None:
        last_read.ask_to_stop(job._job)


def has_read(child: Any, job: Any) -> bool:
    """Whether this was the last job that a child has read; also of a pool that does not know."""
    last_read = getattr(child, "last_read", None)
    return last_read is None or last_read.job == job._job


class Worker(asynpool.Worker):
    """A child's loop, which reads and says each word with one call.

    Its pool keeps here which job it has, and which ones it has ahead of that one's end.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Before the fork: it is the same memory in both.
        self.last_read = LastRead()
        self._is_plain = False
        super().__init__(*args, **kwargs)
        # Where it is refused, a user has too many pipes: fewer jobs go ahead then.
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self.inq._writer, fcntl.F_SETPIPE_SZ, PIECES * select.PIPE_BUF)

    def contribute_to_object(self, obj: Any) -> Any:
        obj.last_read = self.last_read
        obj.current, obj.ahead = None, deque()
        obj.has_booted = False
        return super().contribute_to_object(obj)

    def on_loop_start(self, pid: int) -> None:
        """Begin to work. From here on `outq.put` is ours."""
        super().on_loop_start(pid)
        gc.set_threshold(*COLLECT_AT)
        soft_stop.install(lambda: self.last_read.is_asked_to_stop)
        self.outq.put = self._saying(self.outq.put, self.outq._writer.fileno(), pid)

    def _make_recv_method(self, conn: Any) -> Callable[[float | None], tuple[bool, Any]]:
        if conn is not self.inq:
            return super()._make_recv_method(conn)
        fd, words, left = conn._reader.fileno(), deque[Any](), b""

        def receive(_timeout: float | None) -> tuple[bool, Any]:
            nonlocal left
            while not words:
                text = os.read(fd, missing(left) if left else select.PIPE_BUF)
                if not text:
                    raise EOFError
                found, left = unframed(left + text)
                words.extend(found)
            word = words.popleft()
            if word is not None:
                _kind, (job, _part, function, *_what) = word
                self.last_read.note(job)
                self._is_plain = not hasattr(function, "stops_in_body")
            return True, word

        return receive

    def _saying(self, put: Callable[[Any], None], fd: int, pid: int) -> Callable[[Any], None]:
        """Return the `put` of child `pid`, which leaves out what the pool knows."""

        def say(word: Any) -> None:
            # Before anything else: what is being said is not to be cut short.
            soft_stop.allow(anywhere=False)
            # A copy that did not end with `run`: forked by a signal's handler, say. It gets here
            # before it can read a job.
            end_copy_of(pid)
            kind, facts = word
            if kind != ACK or facts[1] != AT_ONCE:
                self._write(put, fd, word)
            if kind == ACK:
                # The child calls the job's function next.
                soft_stop.allow(anywhere=self._is_plain)

        return say

    def _write(self, put: Callable[[Any], None], fd: int, word: Any) -> None:
        try:
            text = framed(word)
        except Exception:
            # Celery's own knows how to write more types, or says what is wrong with this one.
            put(word)
            return
        while text:
            text = text[os.write(fd, text) :]


class ResultHandler(asynpool.ResultHandler):
    """Reads what children have said: that they have accepted a job, and what became of it."""

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
