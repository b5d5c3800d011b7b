"""Lease operations (finish, ack, give back) that Redis has not confirmed: batched per queue,
repeated until confirmed.

Every operation carries the number of its lease, so sending it twice is harmless.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from redis import Redis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError

from fleet import log_events
from fleet.transport import scripts
from fleet.transport.held_leases import Lease

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 0.1
"""Longest wait of an operation. The end of a run and its acknowledgement are sent as one if both
come within this time."""
FLUSH_AT: Final = 200
MAX_UNCONFIRMED: Final = 16
"""At most this many batches are unanswered; the next one waits."""
_ACTS: Final = ("finish", "done", "ack", "give_back")
"""The scripts of operations, in the order in which they run."""

_Name = tuple[str, int]
"""A lease's message id and number."""


@dataclass(slots=True)
class QueueOps:
    """Pending operations of one queue: for each script, leases and further arguments."""

    by_act: dict[str, dict[_Name, tuple[Any, ...]]] = field(
        default_factory=lambda: {act: {} for act in _ACTS}
    )
    since: float = 0.0
    is_urgent: bool = False

    def __len__(self) -> int:
        return sum(map(len, self.by_act.values()))

    def add(self, name: _Name, act: str, more: tuple[Any, ...]) -> None:
        if act == "ack" and name in self.by_act["finish"]:
            # Both in one operation, which costs Redis little more than either.
            act, more = "done", self.by_act["finish"].pop(name)
        self.by_act[act][name] = more

    def calls(self, worker: str) -> list[scripts.Call]:
        return [
            (act, (worker, *(part for name, more in ops.items() for part in (*name, *more))))
            for act, ops in self.by_act.items()
            if ops
        ]


class PendingOps:
    """A worker's pending operations, by queue. Not thread-safe; the caller holds the lock."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._pending: dict[str, QueueOps] = defaultdict(QueueOps)
        self._unconfirmed: deque[tuple[str, QueueOps, float]] = deque()
        """Batches that were sent without waiting for the reply, and when."""
        self._connection: scripts.ScriptConnection | None = None

    def __bool__(self) -> bool:
        return bool(self._pending or self._unconfirmed)

    def __contains__(self, queue: str) -> bool:
        """Whether a queue has operations that are unsent or unconfirmed."""
        return bool(self._pending.get(queue)) or any(sent[0] == queue for sent in self._unconfirmed)

    def add(self, lease: Lease, act: str, *more: Any, is_urgent: bool) -> None:
        """Add an operation on a lease: a script's name, and its further arguments."""
        ops = self._pending[lease.queue]
        ops.since = ops.since or time.monotonic()
        ops.is_urgent = ops.is_urgent or is_urgent
        ops.add((lease.id, lease.number), act, more)

    def due(self) -> list[str]:
        """Return the queues that should be flushed now."""
        now = time.monotonic()
        return [
            queue
            for queue, ops in list(self._pending.items())
            if ops.is_urgent
            or (ops.since and now - ops.since >= FLUSH_SECONDS)
            or len(ops) >= FLUSH_AT
        ]

    def flush_async(self, client: Redis, queues: Iterable[str]) -> None:
        """Send the pending operations of these queues, and do not wait for the reply.

        A later call collects it. An operation that was refused raises its error then, and is
        pending again.
        """
        self._collect(client, is_to_wait=len(self._unconfirmed) >= MAX_UNCONFIRMED)
        try:
            for queue in queues:
                ops = self.pop(queue)
                if calls := ops.calls(self._worker):
                    self._unconfirmed.append((queue, ops, time.monotonic()))
                    if self._connection is None:
                        self._connection = scripts.ScriptConnection(client)
                    self._connection.send(queue, calls)
        except BaseException:
            self._requeue_unconfirmed()
            raise

    @property
    def is_collect_due(self) -> bool:
        """Whether replies should have arrived by now, and can be read without a wait."""
        if not self._unconfirmed or self._connection is None:
            return False
        is_due = time.monotonic() - self._unconfirmed[-1][2] >= FLUSH_SECONDS
        return (is_due and self._connection.is_answered) or self._is_overdue

    @property
    def _is_overdue(self) -> bool:
        """Whether the server has been silent for longer than the socket timeout."""
        timeout = self._connection.timeout if self._connection is not None else None
        return timeout is not None and time.monotonic() - self._unconfirmed[0][2] > timeout

    def _collect(self, client: Redis, *, is_to_wait: bool = True) -> None:
        """Read the replies: all of them, or those that have arrived.

        Operations without a reply are pending again: it is unknown whether they arrived. Raises the
        server's refusal, and a timeout; a lost connection is only logged.
        """
        try:
            while self._unconfirmed and self._connection is not None:
                if not is_to_wait and not self._connection.is_answered:
                    if self._is_overdue:
                        raise LostConnection("no answer in time")
                    return
                scripts.run_again(client, self._connection.receive())
                self._unconfirmed.popleft()
        except (LostConnection, OSError) as error:
            log_events.OPERATIONS_REPEATED.log(logger, error=error)
            self._requeue_unconfirmed()
        except BaseException:
            self._requeue_unconfirmed()
            raise
        if not self._unconfirmed:
            self._disconnect()

    def _requeue_unconfirmed(self) -> None:
        """Make all unconfirmed operations pending again: sending them twice is harmless."""
        while self._unconfirmed:
            queue, ops, _at = self._unconfirmed.pop()
            self.requeue(queue, ops)
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def flush(self, client: Redis, queues: Iterable[str] | None = None) -> None:
        """Send the pending operations of these queues, or of all."""
        with suppress(RedisError):
            self._collect(client)
        for queue in list(self._pending if queues is None else queues):
            with self.calls(client, queue) as calls:
                if calls:
                    scripts.run_all(client, queue, calls)

    @contextmanager
    def calls(self, client: Redis, queue: str) -> Iterator[list[scripts.Call]]:
        """Give the calls for all operations of a queue; after an error they are pending again."""
        with suppress(RedisError):  # they are sent again, here
            self._collect(client)
        ops = self.pop(queue)
        try:
            yield ops.calls(self._worker)
        except BaseException:
            self.requeue(queue, ops)
            raise

    def pop(self, queue: str) -> QueueOps:
        """Return all operations of a queue: the caller sends them, or requeues them."""
        return self._pending.pop(queue, None) or QueueOps()

    def pop_next(self, client: Redis, queue: str) -> QueueOps:
        """Return all operations of a queue; none if earlier ones are unconfirmed.

        The caller sends them over another connection, where they could arrive before earlier ones.
        An acknowledgement that arrives before the end of its run would mean that it never ran.
        """
        with suppress(RedisError):
            self._collect(client, is_to_wait=False)
        is_unconfirmed = any(each[0] == queue for each in self._unconfirmed)
        return QueueOps() if is_unconfirmed else self.pop(queue)

    def requeue(self, queue: str, ops: QueueOps) -> None:
        """Make these pending again, ahead of later ones."""
        if not ops:
            return
        later = self._pending[queue]
        later.by_act = {act: {**ops.by_act[act], **later.by_act[act]} for act in _ACTS}
        later.since = ops.since or later.since
        later.is_urgent = later.is_urgent or ops.is_urgent
