"""How long a worker has had no answer of Redis: to what it consumes with, or to its renewals.

Other connections of the same process may work, and so may those of all other processes. So the
worker counts this itself, and each heartbeat reports it. A healthy worker has an answer at least
every 5 s: an idle one at the end of its blocking command, a full one to its renewal of leases.
"""

from __future__ import annotations

import time
from typing import Any, Final

from fleet.transport.poller import Poller
from fleet.worker.leasing import Renewal

LOOK_SECONDS: Final = 5.0
"""The longest pause between two looks."""
STEP_SECONDS: Final = 15.0
"""Most that one look adds: a loop that a task blocks reads no answers."""


class RedisSilence:
    """Counts the seconds without an answer. Used in the event loop; `seconds` by any thread."""

    def __init__(self, consumer: Any, renewal: Renewal) -> None:
        self._consumer = consumer
        self._renewal = renewal
        self._looked_at = time.monotonic()
        self._of_consumer = 0.0
        self._of_renewal = 0.0

    @property
    def seconds(self) -> float:
        """Seconds for which Redis has owed an answer; about 5 at most while it answers."""
        return max(self._of_consumer, self._of_renewal)

    def look(self) -> None:
        """Count the time since the last look, if Redis has not answered since then."""
        now, since = time.monotonic(), self._looked_at
        self._looked_at = now
        step = min(now - since, STEP_SECONDS)
        is_owed = _is_consumer_owed(self._consumer, since=since)
        if is_owed is not None:
            self._of_consumer = self._of_consumer + step if is_owed else 0.0
        is_owed = self._renewal.is_owed(since=since)
        self._of_renewal = self._of_renewal + step if is_owed else 0.0


def _is_consumer_owed(consumer: Any, *, since: float) -> bool | None:
    connection = consumer.connection
    if connection is None:
        return True  # the consumer has not connected yet, or tries again
    poller = getattr(connection.transport, "cycle", None)
    return poller.is_owed(since=since) if isinstance(poller, Poller) else None
