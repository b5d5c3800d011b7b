"""Finds, each second, jobs that count as running and do not run.

Celery notices a child that ends. It does not notice a child that another library has reaped, one
that the pool no longer has, or a job that a forked copy of its child has read: such a job is ended
as lost. A child that does not read its job, because it is stopped for example, is killed, and
another child gets the job.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from billiard.einfo import ExceptionInfo
from billiard.exceptions import WorkerLostError
from billiard.pool import EX_FAILURE, READY, RUN
from celery.concurrency import asynpool

from fleet import log_events
from fleet.callbacks import guarded
from fleet.pool.lookahead import has_reached
from fleet.pool.pipes import has_read

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
IDLE_LOOKS: Final = 5
"""An idle pool makes every fifth look only."""
UNREAD_LOOKS: Final = 30
"""Looks in a row at which a child has not read its job; then it is killed.

Looks, not seconds: after a freeze of the whole machine a child has its time again.
"""
NO_PIPE: Final = -1


class Reconciling(asynpool.AsynPool):
    """A pool that ends jobs without a process, and children that do not read theirs."""

    _is_fair: bool
    _looks = 0
    _missing: frozenset[int] = frozenset()
    """Numbers of the jobs that had no process at the last check."""
    _unread: Mapping[int, int]
    """The looks at which each job was not read by its child, by the job's number."""

    @property
    def timers(self) -> dict[Callable[[], None], float]:
        own = {**super().timers, self.end_lost_jobs: LOOK_SECONDS}
        return {guarded(callback): seconds for callback, seconds in own.items()}

    def end_lost_jobs(self) -> None:
        """End each job as lost that has no process now and at the last check.

        Two checks, because its result may still be in a pipe.
        """
        self._looks += 1
        if self._state != RUN or (not self._cache and self._looks % IDLE_LOOKS):
            return
        if self._has_ended_children():
            self.maintain_pool()
        pids = {child.pid for child in self._pool}
        missing = {job for job in self._cache.values() if self._is_missing(job, pids)}
        lost = [job for job in missing if job._job in self._missing]
        self._missing = frozenset(job._job for job in missing.difference(lost))
        for job in lost:
            self._end_as_lost(job, pids)
        self._end_deaf_children()

    def _end_deaf_children(self) -> None:
        """Kill each child that has not read its job for long; another child gets the job."""
        unread = [job for job in self._cache.values() if self.is_unread(job)]
        self._unread = {job._job: self._unread.get(job._job, 0) + 1 for job in unread}
        for job in unread:
            if self._unread[job._job] >= UNREAD_LOOKS:
                log_events.CHILD_READS_NOTHING.log(logger, pid=job._write_to.pid)
                with suppress(ProcessLookupError):
                    os.kill(job._write_to.pid, signal.SIGKILL)

    def is_unread(self, job: Any) -> bool:
        """Say whether a job is in the pipe of a child that could read it, and has not."""
        child = job._write_to
        # Without the fair strategy, a job may be behind others.
        if child is None or job.ready() or not self._is_fair:
            return False
        return child.current in (job, None) and not has_reached(child, job)

    def _has_ended_children(self) -> bool:
        for child in self._pool:
            # Twice: the second call reaps a child that has ended in between.
            if child._is_alive() and not _runs(child.pid) and child._is_alive():
                # Another library has reaped it: the exit status is unknown.
                child._popen.returncode = EX_FAILURE
        return not all(child._is_alive() for child in self._pool)

    def _is_missing(self, job: Any, pids: set[int]) -> bool:
        child = job._write_to
        if child is None or job.ready():
            return False
        if not _has_child(job, pids):
            return True
        reader = child.last_read.reader
        is_at_job = child.current in (job, None) and has_read(child, job)
        return is_at_job and reader != child.pid and not _runs(reader)

    def _end_as_lost(self, job: Any, pids: set[int]) -> None:
        """End a job as if its process had reported it lost, which also frees its slot."""
        log_events.JOB_LOST.log(logger, message_id=job.correlation_id)
        try:
            raise WorkerLostError(f"The worker's process is gone. Job: {job._job}.")
        except WorkerLostError:
            answer = False, ExceptionInfo()
        # The pipe's number may belong to another child by now, which stays busy.
        pipe = job._write_to.inqW_fd if _has_child(job, pids) else NO_PIPE
        self._result_handler.on_state_change((READY, (job._job, None, answer, pipe)))
        # A job that was never accepted would wait for its acceptance.
        job.discard()


def _has_child(job: Any, pids: set[int]) -> bool:
    """Say whether the child that has the job is still in the pool."""
    return job._write_to.pid in pids and (not job._accepted or job._worker_pid in pids)


def _runs(pid: int) -> bool:
    """Say whether a process of this machine runs; a zombie does not. Yes if that is unknown."""
    try:
        # The name, in brackets, may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError:
        return True  # no file descriptor is left, for example
    if not Path("/proc/self/stat").exists():
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
    return False
