"""A take that was sent and is not answered yet; the worker continues meanwhile."""

from __future__ import annotations

import select
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from fleet.transport import scripts
from fleet.transport.pending import QueueOps

SAMPLES: Final = 8
ROUND_TRIP_MOST_US: Final = 1_000_000


@dataclass(slots=True)
class PendingTake:
    """A take of one queue for one channel, and the operations that were sent before it."""

    queue: str
    channel: Hashable
    ops: QueueOps
    calls: list[scripts.Call]
    """The last one is the take."""
    connection: Any
    sent_at: float = field(default_factory=time.monotonic)
    epoch: int = 0
    """The epoch that the take named; 0 for none."""
    is_dropped: bool = False
    """Its messages must not be used: the queue takes them back."""

    @property
    def is_overdue(self) -> bool:
        """Whether the server has been silent for longer than the socket timeout.

        Not if the reply is here: then this process was busy.
        """
        timeout = self.connection.socket_timeout
        is_late = timeout is not None and time.monotonic() > self.sent_at + timeout
        return is_late and not _is_readable(self.connection)


def _is_readable(connection: Any) -> bool:
    """Say whether a reply, or the end of the connection, can be read; read nothing."""
    if connection._sock is None:
        return False
    poll = select.poll()
    poll.register(connection._sock, select.POLLIN)
    return bool(poll.poll(0))


class RoundTrip:
    """The round-trip time (us): the least of the last samples, as others include waits here."""

    def __init__(self) -> None:
        self._samples: list[int] = []
        self.us = 0

    def note(self, seconds: float) -> None:
        self._samples = [*self._samples[1 - SAMPLES :], round(seconds * 1_000_000)]
        self.us = min(*self._samples, ROUND_TRIP_MOST_US)
