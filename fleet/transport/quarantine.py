"""Messages that are put aside, for a person to look at: no worker may fall over them."""

from __future__ import annotations

import logging
from typing import Any, Final

from fleet.transport import scripts
from fleet.transport.held_leases import Lease

logger = logging.getLogger(__name__)

STRIKES: Final = 10
STRIKE_PAUSE_MOST: Final = 60
REASON_LIMIT: Final = 500

# What a message of the wrong shape makes Kombu and Celery raise on its way to the worker's gate.
SHAPE_ERRORS: Final = (
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError),
)


class Quarantine:
    """Puts aside what a channel cannot deliver, and what ends the processes that run it."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def put_aside(self, tag: str, raw: bytes | str, error: Exception) -> None:
        """Put aside a message that this process holds; do nothing when it does not any more."""
        lease = self._channel.leases.dropped(tag)
        if lease is not None:
            logger.error("put a message of queue %s aside", lease.queue, exc_info=error)
            worker = self._channel.leases.worker
            facts = (reason(error), "lease", worker, lease.id, lease.number, raw)
            with self._channel.conn_or_acquire() as client:
                scripts.run(client, lease.queue, "quarantine", *facts)
        self._channel.qos._quick_ack(tag)

    def strike(self, lease: Lease) -> bool:
        """Give back a message whose process has died, later each time; True when that is done.

        One that has killed STRIKES processes is put aside. A lost connection is no reason not to
        give it back at once: then this says False.
        """
        try:
            with self._channel.conn_or_acquire() as client:
                strikes = int(scripts.run(client, lease.queue, "strike", lease.id))
                if strikes < STRIKES:
                    pause = min(2**strikes, STRIKE_PAUSE_MOST)
                    self._channel.leases.give_back(lease.tag, delay_seconds=pause)
                    return True
        except self._channel.connection_errors as error:
            logger.warning("a message that ended its process goes back at once: %r", error)
            return False
        self.put_aside(lease.tag, lease.raw, RuntimeError(f"it has ended {strikes} processes"))
        return True


def reason(error: Exception) -> bytes:
    """Return why a message is put aside, as text that Redis can be told."""
    return f"{type(error).__name__}: {error}"[:REASON_LIMIT].encode("utf-8", "replace")
