"""What a pool's children have ahead of the end of their job, and how it is taken back.

The next jobs wait in the pipe of a child that is at work. They are to keep nobody waiting: not
behind a job that turns out long, nor while another child is free.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any, Final

from billiard.pool import RUN

from fleet.pipes import has_read, unframed

AHEAD_SECONDS: Final = 0.02
"""Behind a job that runs for longer, none waits in its child."""
AHEAD_MOST: Final = 4
"""So many short jobs, one behind the other, are expected to take no longer."""


class Ahead:
    """Mixed into a pool: the jobs that its children have ahead."""

    # What is mixed in below.
    _accept: Callable[[Any, Any], None]
    _fileno_to_inq: dict[int, Any]
    _hub: Any
    _put_back: Callable[[Any], None]
    _putlock: Any
    _state: int
    _write: Callable[[Any, bytes, Any], bool]
    _write_gathered: Callable[[], None]

    _may_go_ahead = False
    _has_ahead = False
    _looks_at = 0.0

    def _soon_free(self) -> Any:
        """Return the child that will first be free of short jobs; None if none will soon."""
        after = time.monotonic() - AHEAD_SECONDS
        soon = [
            child
            for child in self._fileno_to_inq.values()
            if self._may_go_ahead
            and child.current is not None
            and len(child.ahead) < AHEAD_MOST
            and (child.ahead or [child.current])[-1].is_short
            and child.current._time_accepted > after
        ]
        return min(soon, key=_free_first, default=None)

    def _waiting_ahead(self) -> list[Any]:
        """Return the children that have jobs ahead, the one that is free first first."""
        ahead = [child for child in self._fileno_to_inq.values() if child.ahead]
        self._has_ahead = bool(ahead)
        return sorted(ahead, key=_free_first)

    def _share(self, free: set[int]) -> None:
        """Give free children what waits behind others: none is idle while a job waits."""
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

    def _look_soon(self) -> None:
        """Have looked after a moment whether a job turned out to be long."""
        now = time.monotonic()
        # A time, and no flag: a lost connection takes its timers along.
        if now >= self._looks_at:
            self._looks_at = now + AHEAD_SECONDS
            self._hub.call_later(AHEAD_SECONDS, self._look_ahead)

    def _look_ahead(self) -> None:
        if self._state != RUN:
            # Nothing is written any more; a thread of Celery's fires timers meanwhile.
            return
        self._looks_at = 0.0
        self.recall(runs_for=AHEAD_SECONDS)
        if self._has_ahead:
            self._look_soon()

    def recall(self, *, runs_for: float = 0.0) -> None:
        """Have what waits in children, behind jobs that run for so many seconds, wait here."""
        before = time.monotonic() - runs_for
        for child in reversed(self._waiting_ahead()):
            if child.current._time_accepted <= before:
                self._recall_from(child)

    def _recall_from(self, child: Any) -> None:
        for job, _text in reversed(self._take_back(child)):
            self._queue(job)

    def _take_back(self, child: Any, most: int = AHEAD_MOST) -> list[tuple[Any, bytes]]:
        """Take jobs that a child has ahead out of its pipe, with their texts: what it has not read.

        Each is read with one call: one of us gets the whole of it and the other nothing. The
        child's end of the pipe would wait for ever: it is opened a second time, so as not to.
        """
        self._write_gathered()
        if not has_read(child, child.current):
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
                # Not always the first that is left: the child reads, too.
                [(_kind, (number, *_what))], _rest = unframed(text)
                [job] = [job for job in child.ahead if job._job == number]
                child.ahead.remove(job)
                taken.append((job, text))
        except OSError:
            pass  # it is empty
        finally:
            os.close(pipe)
        return taken

    def _queue(self, job: Any) -> None:
        """Have a job that was taken back wait here for the next child that is free."""
        self._put_back(job)
        if job.ready() and not job.is_slot_free:
            # It has been revoked. Celery would free its slot with its dead child.
            self._putlock.release()


def _free_first(child: Any) -> tuple[int, float]:
    return len(child.ahead), child.current._time_accepted
