"""The children of a pool: created, watched, replaced; with pauses when they fail to boot.

The worker ends after a number of failed boots in a row, if none of its processes is alive.
"""

from __future__ import annotations

import gc
import logging
import signal
import time
from collections.abc import Callable
from typing import Any, Final

from billiard.common import human_status
from billiard.pool import EX_FAILURE, EX_OK, EX_RECYCLE
from celery.signals import worker_before_create_process
from celery.worker import state as worker_state

from fleet import log_events
from fleet.callbacks import guarded, may_log
from fleet.pool.child import Child
from fleet.pool.jobs import Jobs
from fleet.pool.loop import Loop

logger = logging.getLogger(__name__)

TRIES: Final = 10
"""Failed boots in a row after which a worker without a living process ends."""
PAUSE_SECONDS: Final = 0.1
"""The pause after the first failed boot; it doubles each time, up to the longest."""
LONGEST_PAUSE_SECONDS: Final = 10.0
BOOT_SECONDS: Final = 600.0
"""Time to boot, after which a process hangs and is killed, unless a project's setting is longer."""
NO_CHILD_SECONDS: Final = 60.0
"""Seconds without a process, and without a successful fork, after which the worker ends."""
REAP_SECONDS: Final = 0.02
"""A process closes its pipes shortly before it can be reaped."""


class Children:
    """The processes of one pool. `look` is called when one of them seems to have ended."""

    def __init__(
        self,
        jobs: Jobs,
        make_loop: Callable[[], Loop],
        *,
        look: Callable[[], Any],
        boot_seconds: float,
    ) -> None:
        self.all: list[Child] = []
        self._jobs, self._make_loop, self._look = jobs, make_loop, look
        self._patience = max(BOOT_SECONDS, boot_seconds)
        self._hub: Any = None
        self._failed_tries = 0
        """Failed tries in a row; processes that were created together count as one."""
        self._creates_at = 0.0
        """The monotonic time before which no process is created."""
        self._refusals = 0
        """Processes in a row that the system refused to create."""
        self._childless_since: float | None = None
        """When the system first refused to create one while there was no other."""

    def find(self, pid: int) -> Child | None:
        return next((child for child in self.all if child.pid == pid), None)

    def idle(self) -> list[Child]:
        """Return those that have booted and have no job."""
        return [
            child for child in self.all if child.has_booted and child.row.number not in self._jobs
        ]

    def watch(self, hub: Any) -> None:
        """Notice ends in this loop."""
        self._hub = hub
        for child in self.all:
            hub.add_reader(child.sentinel, guarded(self._on_sentinel), child)

    def _on_sentinel(self, child: Child) -> None:
        self._hub.remove_reader(child.sentinel)
        self._look()
        if child in self.all:
            self._hub.call_later(REAP_SECONDS, guarded(self._look))

    def note_booted(self) -> None:
        """Note that a child has booted."""
        self._failed_tries = 0

    def create(self, count: int) -> None:
        """Have this many children, unless it is too early for another one."""
        while len(self.all) < count and time.monotonic() >= self._creates_at:
            try:
                self._create()
            except OSError as error:
                # Raised further, it would end the worker with all its tasks.
                self._note_refused(error)
            else:
                self._refusals, self._childless_since = 0, None

    def _create(self) -> None:
        worker_before_create_process.send(sender=self)
        gc.collect()  # a collection after the fork would copy the memory that it visits
        taken = {child.index for child in self.all}
        index = next(index for index in range(len(taken) + 1) if index not in taken)
        child = Child(self._make_loop(), index=index, boot_try=self._failed_tries + 1)
        self.all.append(child)
        if self._hub is not None:
            self._hub.add_reader(child.sentinel, guarded(self._on_sentinel), child)

    def reap(self) -> list[Child]:
        """Remove and return the children that have ended."""
        ended = [child for child in self.all if child.has_ended()]
        for child in ended:
            self.all.remove(child)
            if self._hub is not None:
                self._hub.remove_reader(child.sentinel)
            child.process.join()
            if child.status not in (EX_OK, EX_RECYCLE) and not child.ends_as_told:
                status = human_status(child.status)
                log_events.CHILD_EXITED.log(logger, pid=child.pid, status=status)
        return ended

    def statistics(self) -> dict[str, Any]:
        """Return what Celery's `inspect stats` shows of the jobs of each process."""
        counts = [child.done_count for child in self.all]
        total = sum(counts)
        return {
            "total": total,
            "avg": f"{1 / len(counts) if total else 0:.2f}",
            "all": ", ".join(f"{count / total if total else 0:.2f}" for count in counts),
            "raw": ", ".join(map(str, counts)),
            "strategy": "fair",
            "inqueues": {
                "total": len(counts),
                "active": sum(child.job is not None for child in self.all),
            },
        }

    def kill_hung_boots(self) -> None:
        """Kill the children that have not booted in time."""
        before = time.monotonic() - self._patience
        for child in self.all:
            if not child.has_booted and child.created_at < before:
                child.kill(signal.SIGKILL)

    def note_failed_boot(self, child: Child) -> None:
        """Have a child that ended while it booted replaced later, or end the worker."""
        if child.ends_as_told:
            return
        pause = min(PAUSE_SECONDS * 2 ** (min(child.boot_try, TRIES) - 1), LONGEST_PAUSE_SECONDS)
        if child.boot_try > self._failed_tries:
            self._failed_tries = child.boot_try
            self._pause(pause)
        facts = {"status": human_status(child.status), "most": TRIES}
        if child.boot_try < TRIES or self.all:
            facts |= {"seconds": pause, "number": min(child.boot_try, TRIES)}
            log_events.CHILD_BOOT_FAILED.log(logger, **facts)
            return
        self._creates_at = float("inf")
        log_events.POOL_CANNOT_BOOT.log(logger, **facts)
        # Not an exception: the loop only logs a timer's exception.
        worker_state.should_stop = EX_FAILURE

    def _note_refused(self, error: OSError) -> None:
        """Try again later; without any process for long, end the worker."""
        now = time.monotonic()
        pause = min(PAUSE_SECONDS * 2.0 ** min(self._refusals, 20), LONGEST_PAUSE_SECONDS)
        self._refusals += 1
        self._pause(pause)
        if may_log("child not created"):
            log_events.CHILD_NOT_CREATED.log(logger, seconds=pause, error=error)
        if self.all:
            self._childless_since = None
            return
        self._childless_since = self._childless_since or now
        if now - self._childless_since > NO_CHILD_SECONDS:
            log_events.WORKER_GIVES_UP.log(logger)
            worker_state.should_stop = EX_FAILURE

    def _pause(self, seconds: float) -> None:
        self._creates_at = time.monotonic() + seconds
        if self._hub is not None:
            # A lost connection cancels this timer; then the look of each second comes first.
            self._hub.call_later(seconds, guarded(self._look))
