"""Jobs that wait in the pipe of a busy child, and how they are taken back.

They must wait neither behind a long job nor while another child is free.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any, Final

from billiard.pool import RUN

from fleet.callbacks import guarded
from fleet.pool.pipes import has_read, unframed

SHORT_SECONDS: Final = 0.005
"""The longest expected run time of a job behind which others may wait in its child."""
AHEAD_SECONDS: Final = 0.02
"""The longest expected time of all jobs in a child, and the longest actual time of the first."""
MAX_QUEUED: Final = 26
"""Most jobs that wait in a child: fewer than the pipe's `PIECES`."""


class Lookahead:
    """Mixed into a pool: the jobs that wait in its children's pipes."""

    # Of Celery's pool.
    _accept: Callable[[Any, Any], None]
    _fileno_to_inq: dict[int, Any]
    _hub: Any
    _put_back: Callable[[Any], None]
    _putlock: Any
    _state: int
    _busy_workers: set[int]
    write_stats: Any

    _may_go_ahead = False
    _has_ahead = False
    _looks_at = 0.0
    _following: tuple[Any, Any] | None = None
    """The job that starts next, and its child."""
    _batch: dict[Any, list[tuple[Any, bytes]]] | None = None
    """Jobs to write, by child, while the pool reads results; None at other times."""

    def _soon_free(self) -> Any:
        """Return the child that will be free first; None if none will be soon."""
        after = time.monotonic() - AHEAD_SECONDS
        soon = [
            child
            for child in self._fileno_to_inq.values()
            if self._may_go_ahead
            and child.current is not None
            and has_room(child)
            and child.current._time_accepted > after
        ]
        return min(soon, key=_free_first, default=None)

    def _waiting_ahead(self) -> list[Any]:
        """Return the children with waiting jobs; the one that will be free first comes first."""
        ahead = [child for child in self._fileno_to_inq.values() if child.ahead]
        self._has_ahead = bool(ahead)
        return sorted(ahead, key=_free_first)

    def _share(self, free: set[int]) -> None:
        """Move jobs that wait behind others to free children."""
        for pipe in free:
            other = self._fileno_to_inq.get(pipe)
            for child in reversed(self._waiting_ahead()):
                for job, text in self._take_back(child, most=1):
                    if other is not None and self._write(job, text, other):
                        self._accept(job, other)
                        other = None
                    else:
                        self._queue(job)
                if other is None:
                    break

    def _check_soon(self) -> None:
        """Have a timer check whether a job turned out to be long."""
        now = time.monotonic()
        # A time, not a flag: a lost connection cancels its timers.
        if now >= self._looks_at:
            self._looks_at = now + AHEAD_SECONDS
            self._hub.call_later(AHEAD_SECONDS, guarded(self._recall_long))

    def _recall_long(self) -> None:
        if self._state != RUN:
            # Nothing is written any more, but a thread of Celery's still fires timers.
            return
        self._looks_at = 0.0
        self.recall(runs_for=AHEAD_SECONDS)
        if self._has_ahead:
            self._check_soon()

    def recall(self, *, runs_for: float = 0.0) -> None:
        """Take back the jobs that wait behind one which has run for this many seconds."""
        before = time.monotonic() - runs_for
        for child in reversed(self._waiting_ahead()):
            if child.current._time_accepted <= before:
                self._recall_from(child)

    def _recall_from(self, child: Any) -> None:
        for job, _text in reversed(self._take_back(child)):
            self._queue(job)

    def _take_back(self, child: Any, most: int = MAX_QUEUED) -> list[tuple[Any, bytes]]:
        """Take the jobs that a child has not read out of its pipe; return them with their texts.

        A job is read with one call, so either this process or the child gets all of it. The pipe
        is opened a second time, as reading the child's descriptor would block.
        """
        self._write_batch()
        # A closed pool writes sentinels into the same pipe.
        if self._state != RUN or not has_reached(child, child.current):
            return []
        try:
            pipe = os.open(
                f"/proc/self/fd/{child.inq._reader.fileno()}", os.O_RDONLY | os.O_NONBLOCK
            )
        except OSError:
            return []
        taken: list[tuple[Any, bytes]] = []
        try:
            while len(taken) < most and (text := os.read(pipe, select.PIPE_BUF)):
                # Not always the first one: the child reads as well.
                [(_kind, (number, *_what))], _rest = unframed(text)
                [job] = [job for job in child.ahead if job._job == number]
                child.ahead.remove(job)
                taken.append((job, text))
        except OSError:
            pass  # it is empty
        finally:
            os.close(pipe)
        return taken

    def _write(self, job: Any, text: bytes, child: Any) -> bool:
        if self._batch is not None and child.current is not None:
            self._batch.setdefault(child, []).append((job, text))
        else:
            try:
                os.write(child.inqW_fd, text)
            except OSError:
                return False
        job._write_to = job._scheduled_for = child
        self._busy_workers.add(child.inqW_fd)
        self.write_stats[child.index] += 1
        return True

    def _write_batch(self) -> None:
        """Write the batch, with one call for each child."""
        batch, self._batch = self._batch, None
        refused = []
        for child, jobs in (batch or {}).items():
            try:
                size = os.writev(child.inqW_fd, [text for _job, text in jobs])
            except OSError:
                size = 0
            # A pipe takes whole pieces: the first ones. A job that has left `ahead` is its child's
            # current one, and is handled when that child's end is noticed.
            missed = [job for job, _text in jobs[size // select.PIPE_BUF :] if job in child.ahead]
            for job in missed:
                child.ahead.remove(job)
            refused += missed
        for job in reversed(refused):
            self._queue(job)

    def _start_next(self, child: Any, *, is_freed: bool) -> None:
        """Note that a child starts the next job in its pipe."""
        last = child.ahead[-1]
        child.current = child.ahead.popleft()
        # The freed slot goes to the last job in the pipe: that of the ended one was freed early.
        frees_last = is_freed and not last.is_slot_free and has_room(child)
        last.is_slot_free = last.is_slot_free or frees_last
        self._putlock.early += is_freed and not frees_last
        child.current._time_accepted = time.monotonic()
        self._following = child.current, child

    def _queue(self, job: Any) -> None:
        """Have a job that was taken back wait for the next free child."""
        self._put_back(job)
        if job.ready() and not job.is_slot_free:
            # It was revoked; Celery would free its slot when its child ends.
            self._putlock.release()


def _free_first(child: Any) -> tuple[int, float]:
    return len(child.ahead), child.current._time_accepted


def has_room(child: Any) -> bool:
    """Say whether one more job may wait in a busy child's pipe."""
    if child.current.expected > SHORT_SECONDS or len(child.ahead) >= MAX_QUEUED:
        return False
    waiting = [job.expected for job in child.ahead]
    is_each_short = not waiting or max(waiting) <= SHORT_SECONDS
    return is_each_short and child.current.expected + sum(waiting) < AHEAD_SECONDS


def has_reached(child: Any, job: Any) -> bool:
    """Say whether a child has read this job, or a later one."""
    line = [child.current, *child.ahead] if hasattr(child, "ahead") else []
    behind = line[line.index(job) :] if job in line else [job]
    return any(has_read(child, each) for each in behind)
