"""A worker whose database does not answer gives its waiting hints back, and takes no more.

Its event loop turns and its leases in Redis are renewed, so the queue would keep these hints for it
without limit. The sweep could not help: a hint that the queue knows is not added again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from fleet import log_events
from fleet.worker.io_thread import IOThread

logger = logging.getLogger(__name__)


class Away:
    """Whether the database has been away from one worker for a lease. Used in the event loop."""

    def __init__(
        self, io_thread: IOThread, *, lease_seconds: float, lease_ends: Callable[[], float]
    ) -> None:
        self._io_thread = io_thread
        self._lease_seconds = lease_seconds
        self._lease_ends = lease_ends
        self.is_away = False
        """The worker takes nothing. Plain tasks need no database, so this begins with a hint."""

    def look(self) -> None:
        """Give hints back if none has been answered for a lease; else let the worker take again."""
        is_expired = time.monotonic() > self._lease_ends()
        # Hints that get no answer for a lease go back.
        if is_expired or self._io_thread.longest_wait > self._lease_seconds:
            if count := self._io_thread.refuse_requests():
                self.is_away = True
                log_events.HINTS_GIVEN_BACK.log(logger, count=count)
        else:
            self.is_away = False
