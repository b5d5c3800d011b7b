"""The jobs of a pool that have not ended. Each leaves in one way, and its slot with it."""

from __future__ import annotations

from typing import Any

from billiard.einfo import ExceptionInfo

from fleet.pool.job import Job
from fleet.pool.slots import Slots


class Jobs(dict[int, Job]):
    """Jobs by number, the oldest first."""

    def __init__(self, slots: Slots) -> None:
        super().__init__()
        self._slots = slots

    def add(self, job: Job) -> None:
        """Take a job into the pool."""
        self[job.number] = job
        self._slots.take(job)

    def drop(self, job: Job) -> None:
        """Let go of a job that no child has read; its caller sees to its slot."""
        self._forget(job)
        self._slots.leave(job)

    def end(self, job: Job, *, is_value: bool, answer: Any) -> None:
        """End a job by its value, or by its error as billiard's `ExceptionInfo`."""
        try:
            self._release(job)
        finally:
            job.end(is_value=is_value, answer=answer)

    def end_at_limit(self, job: Job) -> None:
        """End a job that has reached its hard time limit."""
        try:
            self._release(job)
        finally:
            job.exceed(soft=False)

    def lose(self, job: Job, error: BaseException) -> None:
        """End a job whose process has ended."""
        try:
            raise error
        except BaseException:
            einfo = ExceptionInfo()
        self.end(job, is_value=False, answer=einfo)

    def _release(self, job: Job) -> None:
        self._forget(job)
        self._slots.end(job)

    def _forget(self, job: Job) -> None:
        self.pop(job.number, None)
        job.cancel_timers()
        if job.child is not None and job.child.job is job:
            job.child.job = None
