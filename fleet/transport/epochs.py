"""Epochs: how a process notices that a queue was emptied or fell back to an older copy.

Such a queue begins another epoch. This process names its leases to it, and calls the application to
fill in the rest.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from redis import Redis

from fleet import log_events
from fleet.transport import scripts
from fleet.transport.envelope import MalformedMessage
from fleet.transport.held_leases import HeldLeases, Lease
from fleet.transport.pending import PendingOps

logger = logging.getLogger(__name__)

HOLD_AT_ONCE: Final = 100


@dataclass(slots=True)
class QueueState:
    """What a process knows about a queue from which it takes."""

    epoch: int = 0
    last_lease: int = 0
    confirmed: int = 0
    """Number of the last take whose reply has arrived."""


class Epochs:
    """A worker's knowledge of its queues. Not thread-safe; the caller holds the lock."""

    def __init__(self, worker: str, held: HeldLeases, pending_ops: PendingOps) -> None:
        self._worker = worker
        self._held = held
        self._pending_ops = pending_ops
        self.known: dict[str, QueueState] = defaultdict(QueueState)
        """The queues from which this process has taken."""

    def keep(self, client: Redis, queue: str) -> list[Lease]:
        """Name this process's leases to the queue, which takes back others; return the leases."""
        self._pending_ops.flush(client, [queue])
        leases = self._held.leases(queue=queue)
        named = [value for lease in leases for value in (lease.id, lease.number)]
        scripts.run(client, queue, "keep", self._worker, *named)
        self.known[queue].confirmed = 0
        return leases

    def meet(self, client: Redis, queue: str, epoch: int, is_told: int) -> bool:
        """Name the leases to a queue in another epoch than we know.

        If the queue is not told of its owners, call the primer; without one, mark it as told.
        True if the queue may give messages now that it did not give before.
        """
        known = self.known[queue]
        is_other = known.epoch not in (0, epoch)
        if is_other:
            self.declare(client, queue)
        # After it: if it fails, the next call finds the difference again.
        known.epoch = epoch
        if not is_told and not _primers:
            scripts.run(client, queue, "prime", epoch, "told")
        elif not is_told:
            for prime in _primers:
                prime()
        return is_other or not (is_told or _primers)

    def declare(self, client: Redis, queue: str) -> None:
        """Give a queue that was emptied the messages that this process has leased."""
        leases = self.keep(client, queue)
        log_events.QUEUE_BEGAN_ANEW.log(logger, queue=queue, count=len(leases))
        groups = list(_groups(leases))
        for start in range(0, len(groups), HOLD_AT_ONCE):
            values = [value for group in groups[start : start + HOLD_AT_ONCE] for value in group]
            scripts.run(client, queue, "hold", self._worker, *values)


def _groups(leases: Iterable[Lease]) -> Iterator[Sequence[Any]]:
    """Yield leases as `hold.lua` takes them, without those of messages that cannot be read."""
    for lease in leases:
        # Such a message is about to be quarantined.
        with suppress(MalformedMessage):
            yield lease.group()


_primers: list[Callable[[], None]] = []
os.register_at_fork(after_in_child=_primers.clear)


def set_primer(prime: Callable[[], None]) -> None:
    """Register the primer: called while a queue does not know its owners' settings.

    It is called in any thread and repeatedly, so it must return at once.
    """
    _primers[:] = [prime]
