"""Taking leases: one call brings messages of a fair queue, and flushes its pending operations."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

from redis import Redis
from redis.exceptions import ResponseError

from fleet.transport import scripts
from fleet.transport.envelope import is_text
from fleet.transport.epochs import Epochs
from fleet.transport.held_leases import HeldLeases, Lease
from fleet.transport.pending import PendingOps
from fleet.transport.pending_take import PendingTake, RoundTrip
from fleet.transport.repair import is_spoilt, quarantine_wrong_keys


@dataclass(frozen=True, slots=True)
class Room:
    """What a take may bring: `slots` messages at any cost, and more for `budget` us."""

    slots: int
    budget: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What a take has brought: (tag, message) pairs, in order.

    `sleep_seconds` is None when there may be more: else nothing can be had before so long, or
    before a wake-up. `has_foreign`: a stock client has put messages into the plain list.
    """

    messages: list[tuple[str, bytes]]
    sleep_seconds: float | None
    has_foreign: bool


OFTEN: Final = ("take", "finish", "done", "ack", "give_back")
"""What a worker calls all the time. A script that the server does not know costs round trips."""
AT_ONCE_SECONDS: Final = 0.01
NOT_NOW: Final = Taken([], AT_ONCE_SECONDS, has_foreign=False)
"""Of a queue that is to be asked again, soon."""


class LeaseTaking:
    """What a process holds of the queues of one broker, and how it takes more."""

    def __init__(self) -> None:
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._lock = threading.RLock()
        self._held = HeldLeases()
        self._pending_ops = PendingOps(self.worker)
        self._epochs = Epochs(self.worker, self._held, self._pending_ops)
        self._met: set[tuple[str, Hashable]] = set()
        """Queues and channels that have taken from them: a new channel may mean a new server."""
        self._pending: dict[str, PendingTake] = {}
        """Of each queue the take that is not answered yet: the queue knows one at a time."""
        self._differs: set[str] = set()
        """Queues that knew of another number of messages here than we do."""
        self._round_trip = RoundTrip()
        self.has_worker = False
        """A worker of this process renews these leases, and confirms what has become of them."""
        self.has_process: Callable[[], bool] | None = None
        """Whether that worker's pool has a process: without one, nothing is taken."""

    def take(
        self, client: Redis, queue: str, room: Room, *, channel: Hashable, lease_us: int, most: int
    ) -> Taken:
        """Flush pending operations, and take what there is room for."""
        with self._lock:
            if queue in self._pending:
                return NOT_NOW
            self._meet_first(client, queue, channel)
            how = (lease_us, room.slots, room.budget, most)
            reply = self._ask(client, queue, how)
            if self._epochs.meet(client, queue, *reply[4:6]):
                reply = self._ask(client, queue, how)
            return self._taken(client, queue, channel, reply)

    def begin_take(
        self,
        client: Redis,
        queue: str,
        room: Room,
        *,
        channel: Hashable,
        lease_us: int,
        most: int,
        connection: Any,
    ) -> PendingTake | None:
        """Send what `take` would, over a connection of its own, and do not wait for the reply.

        None while another channel of this process waits for a reply of the same queue.
        """
        with self._lock:
            if queue in self._pending:
                return None
            self._meet_first(client, queue, channel)
            ops = self._pending_ops.pop_next(client, queue)
            take = self._arguments(queue, (lease_us, room.slots, room.budget, most))
            calls = [*ops.calls(self.worker), ("take", take)]
            epoch = self._epochs.known[queue].epoch
            pending = PendingTake(queue, channel, ops, calls, connection, epoch=epoch)
            self._pending[queue] = pending
        try:
            pending.send()
        except BaseException:
            self.drop_take(pending)
            raise
        return pending

    def end_take(self, client: Redis, pending: PendingTake) -> Taken:
        """Return what a take has brought whose reply is here, or is waited for."""
        try:
            results = pending.results()
            with self._lock:
                if pending.is_dropped:
                    return NOT_NOW
                reply = _last_result(client, pending, results)
                del self._pending[pending.queue]
                epoch, is_told = reply[4:6]
                is_over = self._epochs.is_over(pending.queue, epoch)
                if not is_over and self._epochs.meet(client, pending.queue, epoch, is_told):
                    return NOT_NOW  # what it brought is not confirmed: it comes with the next one
                if pending.epoch not in (0, epoch):
                    return NOT_NOW  # it brought nothing, and its number is of an epoch before
                taken = self._taken(client, pending.queue, pending.channel, reply)
                if is_over:
                    # The queue was emptied on the way: it does not know these messages any more.
                    self._epochs.declare(client, pending.queue)
                return taken
        except BaseException:
            self.drop_take(pending)
            raise

    def drop_take(self, pending: PendingTake) -> None:
        """Give a take up: what it brings goes back with the next one; what it said is repeated."""
        with self._lock:
            if self._pending.get(pending.queue) is pending:
                del self._pending[pending.queue]
                pending.is_dropped = True
                self._pending_ops.requeue(pending.queue, pending.ops)

    @property
    def round_trip_us(self) -> int:
        """How long (us) a call and its reply are on their way."""
        return self._round_trip.us

    def measure_round_trip(self, client: Redis) -> None:
        """Take a sample of it, in a thread of its own: an event loop would count its turns."""
        began_at = time.monotonic()
        client.ping()
        self._round_trip.note(time.monotonic() - began_at)

    def _taken(self, client: Redis, queue: str, channel: Hashable, reply: list[Any]) -> Taken:
        number, sleep_ms, foreign, _diverted, _epoch, _is_told, *given = reply
        self._epochs.known[queue].confirmed = int(number)
        messages = [message for message in given if is_text(message[0])]
        for message in given:
            if not is_text(message[0]):
                # Nobody but a foreign hand has written such an id.
                facts = (b"its id is no text", "lease", self.worker, *message[:2], message[4])
                scripts.run(client, queue, "quarantine", *facts)
        return Taken(
            [self._hold(queue, channel, message) for message in messages],
            sleep_ms / 1000 if sleep_ms else None,
            bool(foreign),
        )

    def doubt(self, channel: Hashable) -> None:
        """Meet the server anew before the next take: what answers may be another one."""
        with self._lock:
            self._met = {pair for pair in self._met if pair[1] != channel}

    def _meet_first(self, client: Redis, queue: str, channel: Hashable) -> None:
        if (queue, channel) not in self._met:
            if not any(channel == met for _queue, met in self._met):
                scripts.load(client, OFTEN)
            self._meet(client, queue)
            self._met.add((queue, channel))

    def _meet(self, client: Redis, queue: str) -> None:
        """Say what is held, over a new channel: the server may have taken over from another.

        Before the take, and not in one go with it: a script that the server does not know comes
        last, and would not know of what was taken.
        """
        if queue in self._epochs.known:
            if pending := self._pending.get(queue):
                self.drop_take(pending)  # its leases are not named
            self._epochs.keep(client, queue)

    def _ask(self, client: Redis, queue: str, how: tuple[int, int, int, int]) -> list[Any]:
        """Flush pending operations and take, in one round trip; return the take's reply."""
        take = self._arguments(queue, how)
        with self._pending_ops.calls(client, queue) as words:
            *_, reply = scripts.run_all(client, queue, [*words, ("take", take)])
        return list(reply)

    def _arguments(self, queue: str, how: tuple[int, int, int, int]) -> tuple[Any, ...]:
        lease_us, *room = how
        known = self._epochs.known[queue]
        return (self.worker, lease_us, known.confirmed, *room, known.epoch, known.last_lease)

    def _hold(self, queue: str, channel: Hashable, message: list[bytes]) -> tuple[str, bytes]:
        message_id, number, expected, is_urgent, raw, is_redelivered = message[:6]
        lease = Lease(
            queue=queue,
            id=message_id.decode(),
            number=int(number),
            expected=round(float(expected)) if expected else None,
            is_urgent=bool(is_urgent),
            channel=channel,
            raw=raw,
            at=time.monotonic(),
            is_redelivered=bool(is_redelivered),
        )
        known = self._epochs.known[queue]
        known.last_lease = max(known.last_lease, lease.number)
        self._held.add(lease)
        return lease.tag, raw


def _last_result(client: Redis, pending: PendingTake, results: list[Any]) -> list[Any]:
    """Return the take's own result; what the server refused is run once more."""
    refused = [
        call
        for call, result in zip(pending.calls, results, strict=True)
        if isinstance(result, ResponseError)
    ]
    if any(map(is_spoilt, results)):
        quarantine_wrong_keys(client, pending.queue, results)
    again = scripts.run_all(client, pending.queue, refused) if refused else []
    return list(again[-1] if isinstance(results[-1], ResponseError) else results[-1])
