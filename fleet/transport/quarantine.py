"""The quarantine of messages that no worker can handle, for an operator to look at."""

from __future__ import annotations

import logging
from typing import Any, Final

from fleet import log_events
from fleet.transport import scripts
from fleet.transport.held_leases import Lease

logger = logging.getLogger(__name__)

STRIKES: Final = 10
STRIKE_PAUSE_MOST: Final = 60
REASON_LIMIT: Final = 500

# What Kombu and Celery raise for a malformed message on its way to the worker's gate.
SHAPE_ERRORS: Final = (
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError),
)


class Quarantine:
    """Quarantines messages that a channel cannot deliver, or that end their processes."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def put_aside(self, tag: str, error: Exception) -> None:
        """Quarantine a message if this process still holds it."""
        lease = self._channel.leases.remove(tag)
        if lease is not None:
            log_events.MESSAGE_QUARANTINED.log(logger, queue=lease.queue, exc_info=error)
            worker = self._channel.leases.worker
            facts = (reason(error), "lease", worker, lease.id, lease.number, lease.raw)
            with self._channel.conn_or_acquire() as client:
                scripts.run(client, lease.queue, "quarantine", *facts)

    def strike(self, lease: Lease) -> bool:
        """Give back a message whose process has died, with a longer pause each time; True if done.

        After STRIKES processes it is put aside. False if the connection is lost: then the caller
        gives it back at once.
        """
        try:
            with self._channel.conn_or_acquire() as client:
                strikes = int(scripts.run(client, lease.queue, "strike", lease.id))
                if strikes < STRIKES:
                    pause = min(2**strikes, STRIKE_PAUSE_MOST)
                    self._channel.leases.give_back(lease.tag, delay_seconds=pause)
                    return True
        except self._channel.connection_errors as error:
            log_events.STRIKE_NOT_RECORDED.log(logger, error=error)
            return False
        self.put_aside(lease.tag, RuntimeError(f"it has ended {strikes} processes"))
        return True


def reason(error: Exception) -> bytes:
    """Return why a message is put aside, as valid UTF-8."""
    return f"{type(error).__name__}: {error}"[:REASON_LIMIT].encode("utf-8", "replace")
