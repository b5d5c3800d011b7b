"""Gives processes time to boot, and replaces one that ends meanwhile, after a pause.

The worker ends after a number of failed boots in a row, if none of its processes is alive. Celery
ends the whole worker if a process ends during the first boot. Later, it replaces processes without
a pause or a limit, and kills one that has not booted within 4 s, which a busy machine may need.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import Any, Final

from billiard.common import human_status
from billiard.pool import EX_FAILURE, RUN
from celery.concurrency import asynpool
from celery.worker import state as worker_state

from fleet import log_events
from fleet.callbacks import guarded, may_log

logger = logging.getLogger(__name__)

TRIES: Final = 10
"""Failed boots in a row after which a worker without a living process ends."""
PAUSE_SECONDS: Final = 0.1
"""The pause after the first failed boot; it doubles each time, up to the longest."""
LONGEST_PAUSE_SECONDS: Final = 10.0
BOOT_SECONDS: Final = 600.0
"""Time to boot, after which a process hangs and is killed, unless a project's setting is longer."""
NO_CHILD_SECONDS: Final = 60.0
"""How long the pool tries to create a process while it has none. Then the worker stops."""


class Booting(asynpool.AsynPool):
    """Celery's pool, which limits and delays the replacement of processes that fail to boot."""

    _hub: Any
    _failed_tries = 0
    """Failed tries in a row; processes that were created together count as one."""
    _creates_at = 0.0
    """The monotonic time before which no process is created."""
    _refusals = 0
    """Processes in a row that the system refused to create."""
    _childless_since: float | None = None
    """When the system first refused to create one while there was no other."""

    def __init__(self, *args: Any, proc_alive_timeout: float | None = None, **options: Any) -> None:
        # Celery's default cannot be told from a project's own 4 s.
        patience = max(BOOT_SECONDS, proc_alive_timeout or 0.0)
        super().__init__(*args, proc_alive_timeout=patience, **options)

    def did_start_ok(self) -> bool:
        """Replace processes that have ended by now, and return true: the worker continues."""
        self.maintain_pool()
        return True

    def on_process_alive(self, pid: int) -> None:
        super().on_process_alive(pid)
        child, _ = self._process_by_pid(pid)
        if child is not None:
            child.has_booted = True
            self._failed_tries = 0

    def _create_worker_process(self, i: int) -> Any:
        before = list(self._pool)
        try:
            self.on_grow(0)  # makes the pipes that could not be made when a process ended
            child = super()._create_worker_process(i)
        except OSError:
            for half_made in [child for child in self._pool if child not in before]:
                self._discard(half_made)
            raise
        child.boot_try = self._failed_tries + 1
        return child

    def _repopulate_pool(self, exitcodes: Any) -> None:
        if time.monotonic() < self._creates_at:
            return
        try:
            super()._repopulate_pool(exitcodes)
        except OSError as error:
            # Raised further, it would end the worker with all its tasks.
            self._note_refused(error)
        else:
            self._refusals, self._childless_since = 0, None

    def _discard(self, half_made: Any) -> None:
        """Remove a process that was not created as a whole."""
        if half_made._popen is None:
            self._pool.remove(half_made)
            self.destroy_queues((half_made.inq, half_made.outq, half_made.synq), half_made)
        else:
            # It lives, and the loop does not know it. The pool replaces it as one that has died.
            half_made.boot_try = self._failed_tries + 1
            os.kill(half_made.pid, signal.SIGKILL)

    def _note_refused(self, error: OSError) -> None:
        """Try again later; without any process for long, end the worker."""
        now = time.monotonic()
        pause = min(PAUSE_SECONDS * 2.0 ** min(self._refusals, 20), LONGEST_PAUSE_SECONDS)
        self._refusals += 1
        self._creates_at = now + pause
        self._hub.call_later(pause, guarded(self.maintain_pool))
        if may_log("child not created"):
            log_events.CHILD_NOT_CREATED.log(logger, seconds=pause, error=error)
        if any(child._is_alive() for child in self._pool):
            self._childless_since = None
            return
        self._childless_since = self._childless_since or now
        if now - self._childless_since > NO_CHILD_SECONDS:
            log_events.WORKER_GIVES_UP.log(logger)
            worker_state.should_stop = EX_FAILURE

    def _note_failed_boot(self, child: Any) -> None:
        """Have a process that ended while it booted replaced later, or end the worker."""
        if self._state != RUN or getattr(child, "_controlled_termination", False):
            return
        doublings = min(child.boot_try, TRIES) - 1
        pause = min(PAUSE_SECONDS * 2**doublings, LONGEST_PAUSE_SECONDS)
        if child.boot_try > self._failed_tries:
            self._failed_tries = child.boot_try
            self._creates_at = time.monotonic() + pause
            # A lost connection cancels this timer; then Celery's own acts within 5 s.
            self._hub.call_later(pause, guarded(self.maintain_pool))
        facts = {"status": human_status(child.exitcode), "most": TRIES}
        if child.boot_try < TRIES or self._has_another(child):
            facts |= {"seconds": pause, "number": min(child.boot_try, TRIES)}
            log_events.CHILD_BOOT_FAILED.log(logger, **facts)
            return
        self._creates_at = float("inf")
        log_events.POOL_CANNOT_BOOT.log(logger, **facts)
        # Not an exception: the loop only logs a timer's exception.
        worker_state.should_stop = EX_FAILURE

    def _has_another(self, child: Any) -> bool:
        """Say whether another process is alive; its jobs would end with the worker."""
        return any(other is not child and other._is_alive() for other in self._pool)
