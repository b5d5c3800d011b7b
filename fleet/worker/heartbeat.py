"""The heartbeat: says that this worker lives, and learns what it is to do.

It has its own thread, so that a busy loop or a slow statement does not stop it. It stops if the
event loop has not turned for a lease: a worker that hangs must lose its runs.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from celery.worker import state as worker_state

from fleet import log_events
from fleet.alive import touch
from fleet.contract import Application, Node, Orders

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
FIRST_SECONDS: Final = 30.0
"""How long a worker that boots waits for its database. It holds no runs: no lease limits this."""


class Heartbeat(threading.Thread):
    """Beats for one worker node, until stopped."""

    def __init__(
        self,
        application: Application,
        node: Callable[[], Node],
        *,
        held: Callable[[], Sequence[str]],
        follow: Callable[[Orders], None],
        watch_loop: bool,
    ) -> None:
        super().__init__(name="fairshift-heartbeat", daemon=True)
        self._application = application
        self._node = node
        self._held = held
        self._follow = follow
        self._watch_loop = watch_loop
        self._loop_turned_at = math.inf
        self._is_cut_off = False
        self._stopped = threading.Event()
        self.lease_ends = -math.inf
        """When the lease ends, by this machine's monotonic clock: never later than in the row."""

    def loop_turns(self) -> None:
        """Note that the event loop turns, or is about to turn for the first time.

        A worker that boots holds nothing: however long that takes, it is no hang.
        """
        self._loop_turned_at = time.monotonic()

    def loop_ends(self) -> None:
        """Note that the loop has ended because the worker drains, which is no hang."""
        self._watch_loop = False

    def beat(self) -> None:
        """Beat once, now."""
        began_at = time.monotonic()
        self._is_cut_off = False  # unknown, if the statement fails
        orders = self._application.beat(self._node(), self._held())
        self.lease_ends = began_at + self._application.lease_seconds
        self._is_cut_off = orders.is_cut_off
        self._follow(orders)

    def beat_first(self) -> None:
        """Beat once; wait a while for a database that is coming up, as after a crash."""
        until = time.monotonic() + FIRST_SECONDS
        while True:
            touch()
            try:
                return self.beat()
            except Exception as error:
                worker_state.maybe_shutdown()
                if time.monotonic() > until:
                    raise
                self._note_failure(error)
                time.sleep(RETRY_SECONDS)

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        try:
            self._beat_on()
        finally:
            self._application.close()

    def _beat_on(self) -> None:
        pause = self._application.heartbeat_seconds
        while not self._stopped.wait(pause):
            pause = self._application.heartbeat_seconds
            silent = time.monotonic() - self._loop_turned_at
            if self._watch_loop and silent > self._application.lease_seconds:
                log_events.HEARTBEAT_WITHHELD.log(logger, seconds=silent)
                continue
            if not self._is_cut_off:
                touch()
            try:
                self.beat()
            except Exception as error:
                # Beat soon again, on a new connection: when the database is back, rescue must not
                # find this worker's lease expired.
                self._note_failure(error)
                pause = min(pause, RETRY_SECONDS)

    def _note_failure(self, error: Exception) -> None:
        log_events.HEARTBEAT_FAILED.log(logger, error=error)
        # A broken connection may fail to close.
        with suppress(Exception):
            self._application.close()
