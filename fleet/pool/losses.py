"""Finds jobs and children that no event tells of.

A child that ends is noticed. One that another library has reaped, that is stopped, or that has
read a job and died before it noted that, is found by a look each second.
"""

from __future__ import annotations

import logging
import signal
from typing import Final

from billiard.common import human_status
from billiard.exceptions import Terminated, WorkerLostError
from billiard.pool import EX_OK, EX_RECYCLE

from fleet import log_events
from fleet.pool.answers import Answers
from fleet.pool.child import Child, state_of
from fleet.pool.children import Children
from fleet.pool.jobs import Jobs
from fleet.pool.outbox import Outbox

logger = logging.getLogger(__name__)

UNREAD_LOOKS: Final = 30
"""Looks in a row at which an idle child has not read a job that waits; then it is killed.

Looks, not seconds: after a freeze of the whole machine a child has its time again.
"""


class Losses:
    """Ends jobs without a process, and children that do not read."""

    def __init__(self, jobs: Jobs, outbox: Outbox, children: Children, answers: Answers) -> None:
        self._jobs, self._outbox = jobs, outbox
        self._children, self._answers = children, answers
        self._suspects = 0
        """Children that died while they were idle: each may have read a job without noting it."""
        self._missing: set[int] = set()
        """The jobs that were missing at the last look."""

    def note_end(self, child: Child, *, is_closing: bool) -> None:
        """End the job of a child that has ended."""
        job = self._jobs.get(child.row.number)
        if not child.has_booted:
            if not is_closing:
                self._children.note_failed_boot(child)
        elif job is None:
            self._suspects += child.status not in (EX_OK, EX_RECYCLE)
        elif job is child.terminated:
            self._jobs.lose(job, Terminated(-(child.status or 0)))
        else:
            text = f"Worker exited prematurely: {human_status(child.status)} Job: {job.number}."
            self._jobs.lose(job, WorkerLostError(text))

    def send_missing(self) -> None:
        """Send each job again that a child has read which died before it noted that.

        A child that is killed while it waits still reads what comes before it gets a processor.
        The job has not begun. A living child that is about to note its job is awake, or waits for a
        thread of its own, which takes no second. If more are missing than such children have died,
        one will be noted.
        """
        missing = self._nowhere() if self._suspects else set()
        lasting, self._missing = missing & self._missing, missing
        if not missing:
            self._suspects = 0
        if len(missing) > self._suspects or not lasting:
            return
        self._answers.take()  # a child writes its result before it reads the next job
        for child in self._children.idle():
            if state_of(child.pid) != "S":
                return  # the next look comes in a second
        still = self._nowhere()
        self._answers.take()
        self._suspects = 0
        for number in lasting & still & self._jobs.keys():
            self._outbox.add(self._jobs[number])

    def _nowhere(self) -> set[int]:
        unread = self._outbox.unread()
        rows = {child.row.number for child in self._children.all}
        return {
            number
            for number in self._jobs
            if number not in rows and number not in unread and not self._outbox.has(number)
        }

    def end_deaf(self) -> None:
        """Kill children that have not read, or not noted, a job for long, though they are idle."""
        is_unread, is_missing = bool(self._outbox.unread()), bool(self._nowhere())
        for child in self._children.all:
            is_idle = child.row.number not in self._jobs
            is_deaf = is_idle and (is_unread or (is_missing and state_of(child.pid) != "S"))
            if child.look_if_deaf(is_deaf=is_deaf) >= UNREAD_LOOKS:
                log_events.CHILD_READS_NOTHING.log(logger, pid=child.pid)
                child.kill(signal.SIGKILL)

    def end_rest(self) -> None:
        """End all jobs as lost, when there is no child any more."""
        for number in list(self._jobs):
            self._lose(number)

    def _lose(self, number: int) -> None:
        text = f"The worker's process is gone. Job: {number}."
        self._jobs.lose(self._jobs[number], WorkerLostError(text))
