"""Taking leases: one call takes messages of a fair queue, and flushes its pending operations."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from redis import Redis
from redis.exceptions import ResponseError

from fleet.transport import scripts
from fleet.transport.envelope import is_text
from fleet.transport.epochs import Epochs
from fleet.transport.held_leases import HeldLeases, Lease
from fleet.transport.pending import PendingOps
from fleet.transport.pending_take import PendingTake, RoundTrip
from fleet.transport.repair import is_spoilt, quarantine_wrong_keys


class Room(NamedTuple):
    """What to take: `slots` messages at any cost, and more for `budget` us of run time."""

    slots: int
    budget: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a take: leases of its messages, in order.

    `sleep_seconds` is None if there may be more messages; otherwise there are none for this long,
    or until a wake-up. `has_foreign`: a stock client has put messages into the plain list.
    """

    messages: list[Lease]
    sleep_seconds: float | None
    has_foreign: bool


OFTEN: Final = ("take", "finish", "done", "ack", "give_back")
"""Scripts that are loaded in advance: running an unknown one costs more round trips."""
AT_ONCE_SECONDS: Final = 0.01
NOT_NOW: Final = Taken([], AT_ONCE_SECONDS, has_foreign=False)
"""Nothing was taken; the queue is asked again soon."""


class LeaseTaking:
    """The leases of a process on one broker, and how it takes more."""

    def __init__(self) -> None:
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._lock = threading.RLock()
        self._renewing = threading.RLock()
        """Taken before the other one: a renewal that came after the end would count us again."""
        self._held = HeldLeases()
        self._pending_ops = PendingOps(self.worker)
        self._epochs = Epochs(self.worker, self._held, self._pending_ops)
        self._met: set[tuple[str, Hashable]] = set()
        """Queues and the channels that have taken from them. A new channel may be a new server."""
        self._pending: dict[str, PendingTake] = {}
        """The unanswered take of each queue: at most one."""
        self._differs: set[str] = set()
        """Queues that last counted another number of leases here than this process did."""
        self._round_trip = RoundTrip()
        self.has_worker = False
        """A worker of this process renews the leases and flushes the pending operations."""
        self.may_take: Callable[[], bool] | None = None
        """Whether that worker takes messages now: see `fleet/worker/leasing.py`."""

    def take(
        self, client: Redis, queue: str, room: Room, *, channel: Hashable, lease_us: int, most: int
    ) -> Taken:
        """Flush pending operations and take what there is room for; wait for the reply."""
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
        """Send what `take` would, over this connection, without waiting for the reply.

        Returns None while another take of the same queue is unanswered.
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
            scripts.send(connection, queue, calls)
        except BaseException:
            self.drop_take(pending)
            raise
        return pending

    def end_take(self, client: Redis, pending: PendingTake) -> Taken:
        """Return the result of a take; wait for its reply."""
        try:
            results = scripts.read(pending.connection, len(pending.calls))
            with self._lock:
                if pending.is_dropped:
                    return NOT_NOW
                reply = _last_result(client, pending, results)
                del self._pending[pending.queue]
                epoch, is_told = reply[4:6]
                is_over = epoch < self._epochs.known[pending.queue].epoch
                if not is_over and self._epochs.meet(client, pending.queue, epoch, is_told):
                    return NOT_NOW  # these messages are not confirmed: the next take brings them
                if pending.epoch not in (0, epoch):
                    return NOT_NOW  # it took nothing: it named an earlier epoch
                taken = self._taken(client, pending.queue, pending.channel, reply)
                if is_over:
                    # The queue was emptied meanwhile: it does not know these messages.
                    self._epochs.declare(client, pending.queue)
                return taken
        except BaseException:
            self.drop_take(pending)
            raise

    def drop_take(self, pending: PendingTake) -> None:
        """Cancel a take: its messages go back with the next take, its operations are repeated."""
        with self._lock:
            if self._pending.get(pending.queue) is pending:
                del self._pending[pending.queue]
                pending.is_dropped = True
                self._pending_ops.requeue(pending.queue, pending.ops)

    @property
    def round_trip_us(self) -> int:
        """The time (us) of a call and its reply on the network."""
        return self._round_trip.us

    def measure_round_trip(self, client: Redis) -> None:
        """Take a sample; not in an event loop, whose turns would count."""
        began_at = time.monotonic()
        client.ping()
        self._round_trip.note(time.monotonic() - began_at)

    def _taken(self, client: Redis, queue: str, channel: Hashable, reply: list[Any]) -> Taken:
        number, sleep_ms, foreign, _diverted, _epoch, _is_told, *given = reply
        self._epochs.known[queue].confirmed = int(number)
        messages = []
        for message in given:
            if is_text(message[0]):
                messages.append(message)
            else:
                # Fairshift writes no such id.
                facts = (b"its id is no text", "lease", self.worker, *message[:2], message[4])
                scripts.run(client, queue, "quarantine", *facts)
        # After the loop: if that raises, no message is held that is never delivered.
        held = [self._hold(queue, channel, message) for message in messages]
        return Taken(held, sleep_ms / 1000 if sleep_ms else None, bool(foreign))

    def forget_server(self, channel: Hashable) -> None:
        """Before this channel's next take, name the leases again: the server may be a new one."""
        with self._lock:
            self._met = {pair for pair in self._met if pair[1] != channel}

    def _meet_first(self, client: Redis, queue: str, channel: Hashable) -> None:
        """Name the leases of a queue over a new channel: the server may have failed over.

        Before the take, not in the same round trip: a script that the server does not know runs
        last, after the take.
        """
        if (queue, channel) not in self._met:
            if not any(channel == met for _queue, met in self._met):
                scripts.load(client, OFTEN)
            if queue in self._epochs.known:
                self._epochs.keep(client, queue)
            self._met.add((queue, channel))

    def _ask(self, client: Redis, queue: str, how: tuple[int, int, int, int]) -> list[Any]:
        """Flush pending operations and take, in one round trip; return the take's reply."""
        take = self._arguments(queue, how)
        with self._pending_ops.calls(client, queue) as calls:
            *_, reply = scripts.run_all(client, queue, [*calls, ("take", take)])
        return list(reply)

    def _arguments(self, queue: str, how: tuple[int, int, int, int]) -> tuple[Any, ...]:
        lease_us, *room = how
        known = self._epochs.known[queue]
        return (self.worker, lease_us, known.confirmed, *room, known.epoch, known.last_lease)

    def _hold(self, queue: str, channel: Hashable, message: list[bytes]) -> Lease:
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
        return lease


def _last_result(client: Redis, pending: PendingTake, results: list[Any]) -> list[Any]:
    """Return the take's own result; run once more what the server refused."""
    refused = [
        call
        for call, result in zip(pending.calls, results, strict=True)
        if isinstance(result, ResponseError)
    ]
    if any(map(is_spoilt, results)):
        quarantine_wrong_keys(client, pending.queue, results)
    again = scripts.run_all(client, pending.queue, refused) if refused else []
    return list(again[-1] if isinstance(results[-1], ResponseError) else results[-1])
