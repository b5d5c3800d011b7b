"""Notices which jobs have begun: their children's rows say so, and no message does.

A job's result brings its start along, so that of a short job needs no look.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from fleet.pool.children import Children
from fleet.pool.jobs import Jobs
from fleet.pool.limits import Limits
from fleet.pool.outbox import Outbox
from fleet.pool.slots import Slots

PAUSE_SECONDS: Final = 0.01
"""The first pause before a look; it doubles while nothing begins, up to the longest."""
LONGEST_PAUSE_SECONDS: Final = 0.25
READ_SECONDS: Final = 0.1
"""The most that an idle child needs to read a job."""


class Starts:
    """Accepts jobs that children have begun."""

    def __init__(
        self,
        jobs: Jobs,
        outbox: Outbox,
        children: Children,
        *,
        limits: Limits,
        slots: Slots,
        later: Callable[..., Any],
    ) -> None:
        self._jobs, self._outbox, self._children = jobs, outbox, children
        self._limits, self._slots, self._later = limits, slots, later
        self._looks_at, self._pause = 0.0, PAUSE_SECONDS

    def let_idle_read(self) -> None:
        """Wait a moment while an idle child is about to read a job: that one has begun."""
        until = time.monotonic() + READ_SECONDS
        while self._outbox.unread() and self._children.idle() and time.monotonic() < until:
            time.sleep(READ_SECONDS / 100)

    def look_soon(self) -> None:
        """Have a timer look, if a job may have begun."""
        now = time.monotonic()
        # A time, not a flag: a lost connection cancels its timers.
        if now >= self._looks_at and self._may_begin():
            self._looks_at = now + self._pause
            self._later(self._pause, self._look_again)

    def _may_begin(self) -> bool:
        busy = sum(child.job is not None for child in self._children.all)
        return busy < len(self._children.all) and busy < len(self._jobs) - len(self._outbox)

    def _look_again(self) -> None:
        if self._limits.are_closed:
            return
        self._looks_at = 0.0
        has_found = self.look()
        self._pause = PAUSE_SECONDS if has_found else min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self.look_soon()

    def look(self) -> bool:
        """Accept the jobs that have begun; say whether there were any."""
        has_found = False
        for child in self._children.all:
            number = child.row.number
            job, began_at = self._jobs.get(number), child.row.began_at
            if job is None or job.child is not None or child.row.number != number:
                continue
            has_found = True
            job.child, child.job = child, job
            elapsed = time.monotonic() - began_at
            self._slots.note_elapsed(job, elapsed)
            self._limits.begin(job, elapsed=elapsed)
            job.accept(child.pid, began_at)
        return has_found
