"""Time limits: a soft signal for the job, the end of its process at a hard one."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any, Final

from billiard.common import TERM_SIGNAL

from fleet.pool.job import Job
from fleet.pool.jobs import Jobs

KILL_SECONDS: Final = 0.1
"""How long a process has after SIGTERM, at a hard time limit."""


class Limits:
    """The limits of the jobs that children have begun. `later` returns a timer's entry."""

    def __init__(self, jobs: Jobs, *, later: Callable[..., Any]) -> None:
        self._jobs, self._later = jobs, later
        self.are_closed = False

    def begin(self, job: Job, *, elapsed: float) -> None:
        """Start the time limits of a job that has run for `elapsed` seconds."""
        if self.are_closed:
            return
        limits = ((job.soft_limit, self.reach_soft), (job.hard_limit, self.reach_hard))
        timers = (
            self._later(max(0.0, limit - elapsed), reach, job) for limit, reach in limits if limit
        )
        job.timers = tuple(timer for timer in timers if timer is not None)

    def stop_timers(self) -> None:
        """Set no more timers: a thread of Celery's fires them when the event loop has ended."""
        self.are_closed = True
        for job in self._jobs.values():
            job.cancel_timers()

    def enforce(self) -> None:
        """Enforce the limits that are reached, without timers."""
        now = time.monotonic()
        for job in list(self._jobs.values()):
            if now > job.kill_at:
                self.terminate(job, signal.SIGKILL)
            elif job.child is not None and job.hard_limit and now > job.began_at + job.hard_limit:
                self.reach_hard(job)
            elif job.child is not None and job.soft_limit and now > job.began_at + job.soft_limit:
                self.reach_soft(job)

    def terminate(self, job: Job, number: int) -> None:
        """Kill a job's process, unless the job has ended."""
        child = job.child
        if child is not None and job.is_running:
            child.terminated, child.ends_as_told = job, True
            child.kill(number)

    def reach_soft(self, job: Job) -> None:
        """Stop a job's body softly, unless it has ended."""
        child = job.child
        if child is None or job.soft_sent or job.ready() or not job.ask_to_stop():
            return
        job.soft_sent = True
        job.exceed(soft=True)
        if job.is_running:
            child.kill(signal.SIGUSR1)

    def reach_hard(self, job: Job) -> None:
        """End a job, and its process, unless it has ended."""
        child = job.child
        if child is None or job.ready() or not job.is_running:
            return
        child.ends_as_told = True
        try:
            self._jobs.end_at_limit(job)
        finally:
            child.kill(TERM_SIGNAL, group=True)
            child.kill_at = time.monotonic() + KILL_SECONDS
            self._later(KILL_SECONDS, child.kill_if_due)
