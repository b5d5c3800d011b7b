"""Taking: from which queue the channel takes next, how much, and how messages are handed over."""

from __future__ import annotations

import logging
from collections import deque
from queue import Empty
from time import monotonic
from typing import Any, Final

from kombu.exceptions import OperationalError
from kombu.transport import redis
from redis.exceptions import RedisError

from fleet.transport.adoption import adopt
from fleet.transport.envelope import delivered
from fleet.transport.lease_taking import AT_ONCE_SECONDS, Room, Taken
from fleet.transport.pending_take import PendingTake
from fleet.transport.quarantine import SHAPE_ERRORS
from fleet.transport.waiting import STOCK_WAIT_SECONDS, Waiting

logger = logging.getLogger(__name__)

HAND_OVER_AT_ONCE: Final = 32
HAND_OVER_SECONDS: Final = 0.01


class Taking(Waiting):
    """Takes from fair and stock queues in turn, and delivers what has arrived."""

    def _get(self, queue: str) -> Any:
        if queue not in self.fair_queues:
            return super()._get(queue)  # type: ignore[misc]
        for tag, raw in self._take(queue, Room(1, 0), most=1).messages:
            return delivered(raw, tag=tag, is_redelivered=self.leases.is_redelivered(tag))
        raise Empty

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Take what there is room for; when nothing is left, wait for a wake-up."""
        fair = self.active_fair_queues
        if not fair:
            self._waits_for_fair = False
            super()._brpop_start(timeout)  # type: ignore[misc]
            return
        if self._pending_take is not None:
            # Kombu asks for a command only where none is on its way: the connection was lost.
            self.leases.drop_take(self._pending_take)
            self._pending_take = None
        if len(self._arrived) > HAND_OVER_AT_ONCE:
            # Who is to get more is chosen when more can be dealt with.
            return
        if self._take_all():
            until, self._waits = min(self._waits.values(), default=0.0), {}
            self._wait(fair, max(AT_ONCE_SECONDS, until - monotonic()))

    def _take_all(self) -> bool:
        """Take from one queue after the other; True when none of them has more now.

        Who has been asked is last in turn: none starves behind another's backlog. A stock queue is
        asked for one message and only for a free slot, and the others do not fill the window
        before it has been. In an event loop a take is sent, and this goes on after its reply.
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
        """Send a take over the connection of the wake-ups; False when it must wait."""
        connection = self.client.connection
        with self.conn_or_acquire() as client:
            pending = self.leases.begin_take(
                *(client, queue, room), most=self.take_most, connection=connection, **self._how()
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
            # Nobody may read the rest of the reply as an answer to something else.
            pending.connection.disconnect()
            raise
        self._note_taken(pending.queue, taken)
        if not self.qos.can_take():
            # All are asked again when there is room, also those that were empty.
            self._waits = {}
        if pending.queue not in self.active_fair_queues:
            self._give_back_arrived(pending.queue)

    @property
    def has_pending_take(self) -> bool:
        return self._pending_take is not None

    def refuse_overdue(self) -> None:
        """Raise TimeoutError when the server does not answer a take."""
        if self._pending_take is not None and self._pending_take.is_overdue:
            self._pending_take.connection.disconnect()
            raise TimeoutError("Redis does not answer a take")

    def _note_wait(self, queue: str, seconds: float | None) -> None:
        if seconds is None:
            self._waits.pop(queue, None)
        else:
            self._waits[queue] = monotonic() + seconds

    def _note_taken(self, queue: str, taken: Taken) -> None:
        """Keep what a take has brought, and how long the queue has no more, if known."""
        self._note_wait(queue, self._deal_with(queue, taken))

    def _deal_with(self, queue: str, taken: Taken) -> float | None:
        self._arrived.extend((queue, tag, raw) for tag, raw in taken.messages)
        if taken.has_foreign:
            self._with_repair([queue], adopt, self, queue)
        if taken.sleep_seconds is None and not taken.messages:
            # More, but nothing for a window without a free slot; or too much to look through.
            self.qos.head_waits = True
            return AT_ONCE_SECONDS
        return None if taken.sleep_seconds is None else float(taken.sleep_seconds)

    def _take_stock(self, queue: str) -> float | None:
        """Take one message of a stock queue, as Kombu does."""
        try:
            message = self._with_repair([queue], super()._get, queue)  # type: ignore[misc]
            self.connection._deliver(message, queue)
        except Empty:
            return STOCK_WAIT_SECONDS
        except SHAPE_ERRORS as error:
            logger.error("what came was no message: %.500r", error)  # noqa: TRY400  their bytes
        return None

    def _take(self, queue: str, room: Room, *, most: int) -> Taken:
        with self.conn_or_acquire() as client:
            return self.leases.take(client, queue, room, most=most, **self._how())

    def _how(self) -> dict[str, Any]:
        return {"channel": self.holder, "lease_us": round(self.lease_seconds * 1_000_000)}

    def hand_over_some(self) -> bool:
        """Deliver a few of the messages that have arrived; return whether there were any.

        Not all at once: while this process is busy with a batch, its children would have no work;
        nor for long, where it runs them itself.
        """
        ends_at = monotonic() + HAND_OVER_SECONDS
        for number in range(HAND_OVER_AT_ONCE):
            if not self._arrived or (number and monotonic() > ends_at):
                return number > 0
            self._hand_over(*self._arrived.popleft())
        return True

    def _hand_over(self, queue: str, tag: str, raw: bytes) -> None:
        """Deliver one message; what is none is put aside, and the worker goes on."""
        try:
            is_redelivered = self.leases.is_redelivered(tag)
            message = delivered(raw, tag=tag, is_redelivered=is_redelivered)
            self.connection._deliver(message, queue)
            if queue in self._unacknowledged:
                self.qos.delivered(tag)
        except SHAPE_ERRORS as error:
            self.quarantine.put_aside(tag, raw, error)
        except (RedisError, OSError, OperationalError):
            raise  # the broker is lost, and with it this channel
        except Exception as error:
            # Celery stores how a message ends that names no task, and its store may refuse that.
            logger.exception("a message could not be dealt with")
            self.quarantine.put_aside(tag, raw, error)

    def put_aside(self, message: Any, error: Exception) -> None:
        """Put a delivered message of a fair queue aside, for a person to look at."""
        self.quarantine.put_aside(message.delivery_tag, redis.dumps(message._raw), error)

    def _give_back_arrived(self, queue: str) -> None:
        for _queue, tag, _raw in [each for each in self._arrived if each[0] == queue]:
            self.leases.give_back(tag)
        self._arrived = deque(each for each in self._arrived if each[0] != queue)
