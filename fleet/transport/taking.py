"""From which queue a channel takes next, how much it takes, and how it delivers messages."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty
from time import monotonic
from typing import Any, Final

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from fleet import log_events
from fleet.contract import is_hint
from fleet.transport.adoption import adopt
from fleet.transport.envelope import delivered
from fleet.transport.held_leases import Lease
from fleet.transport.lease_taking import AT_ONCE_SECONDS, Room, Taken
from fleet.transport.leases import Leases
from fleet.transport.pending_take import PendingTake
from fleet.transport.quarantine import SHAPE_ERRORS, Quarantine
from fleet.transport.waiting import STOCK_WAIT_SECONDS, Waiting

logger = logging.getLogger(__name__)

HAND_OVER_AT_ONCE: Final = 32
"""Most messages that are delivered in one turn of the loop."""
HAND_OVER_SECONDS: Final = 0.01
"""After this time no further one is delivered in that turn."""


class Taking(Waiting):
    """Takes from fair and stock queues in turn, and delivers what has arrived."""

    # Options of the connection.
    fair_queues: Sequence[str] = ()
    lease_seconds: float = 30.0
    take_most: int = 256
    leases: Leases
    holder: object
    quarantine: Quarantine
    active_fair_queues: Sequence[str] = ()
    """The fair queues that are consumed here; read in each turn of the loop."""
    take_hint: Callable[[Any], bool] | None = None
    """Takes the message of a hint for a worker's gate; False for one that Celery handles first."""
    _unacknowledged: frozenset[str] | set[str] = frozenset()
    """Queues whose consumer acknowledges nothing: a delivery settles the message."""
    _arrived: deque[Lease]
    _in_turn: list[str]
    _waits: dict[str, float]
    """Queues that are empty for now, and the `monotonic()` time of the next look."""
    _with_repair: Callable[..., Any]

    def _get(self, queue: str) -> Any:  # type: ignore[override]
        if queue not in self.fair_queues:
            return super()._get(queue)
        for lease in self._take(queue, Room(1, 0), most=1).messages:
            return _message_of(lease)
        raise Empty

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Take what there is room for; if the queues are empty, wait for a wake-up."""
        fair = self.active_fair_queues
        if not fair:
            self._waits_for_fair = False
            super()._brpop_start(timeout)
            return
        if self._pending_take is not None:
            # Kombu starts a command only if none is under way: the connection was lost.
            self.leases.drop_take(self._pending_take)
            self._pending_take = None
        if len(self._arrived) > HAND_OVER_AT_ONCE:
            # The queue should choose the next messages only when they can be delivered.
            return
        if self._take_all():
            until, self._waits = min(self._waits.values(), default=0.0), {}
            self._wait(fair, max(AT_ONCE_SECONDS, until - monotonic()))

    def _take_all(self) -> bool:
        """Take from the queues in turn; True if all of them are empty for now.

        The queue that was just asked comes last, so that a backlog in one queue does not starve the
        others. A stock queue gives one message at a time, and only for a free slot. In an event
        loop, a take is sent without waiting: the turn continues after its reply.
        """
        while self.qos.can_take():
            now = monotonic()
            queue = next(
                (name for name in self._in_turn if self._waits.get(name, 0.0) <= now), None
            )
            if queue is None:
                return True
            room = self.qos.room()
            is_fair = queue in self.fair_queues
            if not is_fair and not room.slots:
                break
            self._in_turn = [name for name in self._in_turn if name != queue] + [queue]
            if not is_fair:
                self._note_wait(queue, self._take_stock(queue))
            elif not self.connection.cycle.is_in_loop:
                self._note_taken(queue, self._take(queue, room, most=self.take_most))
            elif self._begin_take(queue, room):
                return False
        self._waits = {}
        return False

    def _begin_take(self, queue: str, room: Room) -> bool:
        """Send a take over the connection for wake-ups; False if another take is unanswered."""
        connection = self.client.connection
        with self.conn_or_acquire() as client:
            pending = self.leases.begin_take(
                *(client, queue, room), connection=connection, **self._take_options(self.take_most)
            )
        if pending is None:
            self._note_wait(queue, AT_ONCE_SECONDS)
            return False
        self._pending_take, self._in_poll = pending, connection
        self._waits_for_fair = False
        self._brpop_sent_at = monotonic()
        return True

    def _end_take(self, pending: PendingTake) -> None:
        """Read the reply of a take, or wait for it."""
        self._pending_take, self._in_poll = None, None
        try:
            with self.conn_or_acquire() as client:
                taken = self.leases.end_take(client, pending)
        except BaseException:
            # The rest of the reply must not be read as the reply to another command.
            pending.connection.disconnect()
            raise
        self._note_taken(pending.queue, taken)
        if not self.qos.can_take():
            # Once there is room again, ask all queues, including those that were empty.
            self._waits = {}
        if pending.queue not in self.active_fair_queues:
            self._give_back_arrived(pending.queue)

    @property
    def has_pending_take(self) -> bool:
        return self._pending_take is not None

    def refuse_overdue(self) -> None:
        """End a take that the server does not answer, and raise TimeoutError."""
        pending = self._pending_take
        if pending is not None and pending.is_overdue:
            self._pending_take, self._in_poll = None, None
            self.leases.drop_take(pending)
            pending.connection.disconnect()
            raise TimeoutError("Redis does not answer a take")

    def _note_wait(self, queue: str, seconds: float | None) -> None:
        if seconds is None:
            self._waits.pop(queue, None)
        else:
            self._waits[queue] = monotonic() + seconds

    def _note_taken(self, queue: str, taken: Taken) -> None:
        """Store the messages of a take, and how long the queue stays empty, if that is known."""
        self._arrived.extend(taken.messages)
        if taken.has_foreign:
            self._with_repair([queue], adopt, self, queue)
        seconds = taken.sleep_seconds
        if seconds is None and not taken.messages:
            # There are messages, but none that may be taken without a free slot; or the script
            # stopped looking.
            self.qos.head_waits = True
            seconds = AT_ONCE_SECONDS
        self._note_wait(queue, seconds)

    def _take_stock(self, queue: str) -> float | None:
        """Take one message of a stock queue, as Kombu does."""
        try:
            message = self._with_repair([queue], super()._get, queue)
            self.connection._deliver(message, queue)
        except Empty:
            return STOCK_WAIT_SECONDS
        except SHAPE_ERRORS as error:
            log_events.MESSAGE_DROPPED.log(logger, error=error)
        return None

    def _take(self, queue: str, room: Room, *, most: int) -> Taken:
        with self.conn_or_acquire() as client:
            return self.leases.take(client, queue, room, **self._take_options(most))

    def _take_options(self, most: int) -> dict[str, Any]:
        lease_us = round(self.lease_seconds * 1_000_000)
        return {"channel": self.holder, "lease_us": lease_us, "most": most}

    def hand_over_some(self) -> bool:
        """Deliver a few of the messages that have arrived; return whether there were any.

        Limited in number, because children have no work while this process delivers; limited in
        time, because some pools run the task in this process.
        """
        ends_at = monotonic() + HAND_OVER_SECONDS
        for number in range(HAND_OVER_AT_ONCE):
            if not self._arrived or (number and monotonic() > ends_at):
                return number > 0
            self._hand_over(self._arrived.popleft())
        return True

    def _hand_over(self, lease: Lease) -> None:
        """Deliver one message; put a malformed one into quarantine."""
        tag = lease.tag
        try:
            message = _message_of(lease)
            if not (lease.is_hint and self._give_to_gate(message)):
                self.connection._deliver(message, lease.queue)
            if lease.queue in self._unacknowledged:
                self.qos.ack(tag)
        except SHAPE_ERRORS as error:
            self.quarantine.put_aside(tag, error)
        except (RedisError, OSError, OperationalError):
            raise  # the broker is lost, and with it this channel
        except Exception as error:
            # Celery stores a result for a message without a task, and its backend may refuse it.
            log_events.MESSAGE_NOT_HANDLED.log(logger, exc_info=True)
            self.quarantine.put_aside(tag, error)

    def _give_to_gate(self, hint: dict[str, Any]) -> bool:
        """Give a hint to the worker's gate; False if there is none, or Celery comes first."""
        return self.take_hint is not None and self.take_hint(self.Message(hint, channel=self))

    def _give_back_arrived(self, queue: str) -> None:
        for lease in [each for each in self._arrived if each.queue == queue]:
            self.leases.give_back(lease.tag)
        self._arrived = deque(each for each in self._arrived if each.queue != queue)


def _message_of(lease: Lease) -> dict[str, Any]:
    """Return a leased message as Kombu has it, and note whether it is a hint."""
    message = delivered(lease.raw, tag=lease.tag, is_redelivered=lease.is_redelivered)
    lease.is_hint = is_hint(message["headers"])
    return message
