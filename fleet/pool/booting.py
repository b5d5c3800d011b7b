"""How a pool's processes boot: one that ends before it has booted is replaced after a pause.

Celery ends the whole worker when a process has ended by the time it looks first, and later
replaces processes without a pause and without an end.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from billiard.common import human_status
from billiard.pool import EX_FAILURE, RUN
from celery.concurrency import asynpool
from celery.worker import state as worker_state

logger = logging.getLogger(__name__)

TRIES: Final = 10
"""Boots in a row that may fail; then the worker ends."""
PAUSE_SECONDS: Final = 0.1
"""The pause after the first of them. Each next one is twice as long."""
LONGEST_PAUSE_SECONDS: Final = 10.0


class Booting(asynpool.AsynPool):
    """A pool that replaces processes which ended while they booted."""

    _hub: Any
    _failed_tries = 0
    """Tries in a row. Processes that were created together count as one."""
    _creates_at = 0.0
    """The monotonic time before which no process is created."""

    def did_start_ok(self) -> bool:
        """Return true: processes that have ended by now are replaced, and the worker goes on."""
        self.maintain_pool()
        return True

    def on_process_alive(self, pid: int) -> None:
        super().on_process_alive(pid)
        child, _ = self._process_by_pid(pid)
        if child is not None:
            child.has_booted = True
            self._failed_tries = 0

    def _create_worker_process(self, i: int) -> Any:
        child = super()._create_worker_process(i)
        child.boot_try = self._failed_tries + 1
        return child

    def _repopulate_pool(self, exitcodes: Any) -> None:
        if time.monotonic() >= self._creates_at:
            super()._repopulate_pool(exitcodes)

    def _note_failed_boot(self, child: Any) -> None:
        """Have a process that ended while it booted replaced after a pause, or end the worker."""
        if self._state != RUN or getattr(child, "_controlled_termination", False):
            return
        pause = min(PAUSE_SECONDS * 2 ** (child.boot_try - 1), LONGEST_PAUSE_SECONDS)
        if child.boot_try > self._failed_tries:
            self._failed_tries = child.boot_try
            self._creates_at = time.monotonic() + pause
            # A lost connection takes this timer along; then Celery's own looks within 5 s.
            self._hub.call_later(pause, self.maintain_pool)
        found = f"a process of the pool ended while it booted ({human_status(child.exitcode)})"
        if child.boot_try < TRIES:
            logger.error("%s: next try in %.1f s, %d of %d", found, pause, child.boot_try, TRIES)
            return
        self._creates_at = float("inf")
        logger.critical("%s: %d tries in a row have failed, the worker ends", found, TRIES)
        # Not an exception: the loop logs those of a timer, and turns on.
        worker_state.should_stop = EX_FAILURE
