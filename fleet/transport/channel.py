"""The channel: Kombu's Redis channel, in which some queues are fair.

Publishing, taking and settling of a fair queue are scripts; all else (fanout, reply queues,
remote control, stock queues) is Kombu's. Read its `transport/redis.py` beside this.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from functools import partial
from queue import Empty
from time import monotonic
from typing import Any, Final

from celery.exceptions import ImproperlyConfigured
from kombu.exceptions import OperationalError
from kombu.transport import redis, virtual
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import RedisError, ResponseError

from fleet.keys import queue_key
from fleet.transport import scripts
from fleet.transport.adoption import adopt
from fleet.transport.compression import unpacked
from fleet.transport.envelope import address, delivered, read_json
from fleet.transport.leases import AT_ONCE_SECONDS, Room, Taken, leases_on
from fleet.transport.pending_take import PendingTake
from fleet.transport.publish_batch import PublishBatch
from fleet.transport.qos import QoS
from fleet.transport.quarantine import SHAPE_ERRORS, Quarantine
from fleet.transport.repair import is_wrong_type, mend
from fleet.transport.stock import bindings, lists_of, put_aside_bindings, put_aside_wrong

logger = logging.getLogger(__name__)

STOCK_WAIT_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 1.0
HAND_OVER_AT_ONCE: Final = 32
HAND_OVER_SECONDS: Final = 0.01
JSON: Final = "application/json"
OPTIONS: Final = ("fair_queues", "lease_seconds", "take_most")
"""What a connection's transport options may say of fair queues."""


class Message(virtual.Message):
    """Kombu's message, unpacked within a limit, with a quicker way to read what nearly all are."""

    def __init__(self, payload: Any, channel: Any = None, **kwargs: Any) -> None:
        headers = payload.get("headers")
        method = headers.pop("compression", None) if isinstance(headers, dict) else None
        super().__init__(payload, channel=channel, **kwargs)
        if not method:
            return
        # As it came: what is given back is this payload.
        headers["compression"] = method
        try:
            self.body = unpacked(self.body, method)
        except Exception:
            # Raised where Kombu raises its own, for the consumer to deal with.
            self.errors.append(sys.exc_info())

    def _decode(self) -> Any:
        is_json = self.content_type == JSON and (self.accept is None or JSON in self.accept)
        if is_json and isinstance(self.body, bytes) and self.body:
            return read_json(self.body.decode())
        return super()._decode()

    def ack_log_error(self, *args: Any, **kwargs: Any) -> None:
        if self._may_settle():
            super().ack_log_error(*args, **kwargs)

    def reject_log_error(self, *args: Any, **kwargs: Any) -> None:
        if self._may_settle():
            super().reject_log_error(*args, **kwargs)

    def _may_settle(self) -> bool:
        """Whether the connection that brought it is still open, or its lease is this process's.

        A message of a stock queue comes again with another connection; leases of fair queues are
        held over all connections.
        """
        return not self.channel.closed or self.delivery_tag in self.channel.leases


class FairQueues:
    """Mixed into a Redis channel: the queues of `fair_queues` are fair."""

    QoS = QoS
    Message = Message
    fair_queues: Sequence[str] = ()
    lease_seconds: float = 30.0
    take_most: int = 256
    # What is mixed in below.
    connection: Any
    client: Any
    active_queues: list[str]
    conn_or_acquire: Callable[..., Any]
    _in_poll: Any
    _in_listen: Any
    _closing: bool
    _in_turn: list[str]
    _brpop_sent_at: float | None

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        self.leases = leases_on(self._broker(connection.client))
        self.holder = object()
        self.quarantine = Quarantine(self)
        self._arrived: deque[tuple[str, str, bytes]] = deque()
        self._waits: dict[str, float] = {}
        """The queues that have no more now, and until when by `monotonic()`."""
        super().__init__(connection, **kwargs)  # type: ignore[call-arg]
        if self.fair_queues and self.global_keyprefix:  # type: ignore[attr-defined]
            raise ImproperlyConfigured(
                "global_keyprefix and fair_queues do not go together: give each project a Redis "
                "database of its own"
            )

    def _broker(self, given: Any) -> Hashable:
        """Return what a connection leads to, the same for all connections that lead there."""
        return (given.hostname, given.port, given.virtual_host)

    _talking: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if self.connection is None:
            # Kombu would raise AttributeError, which no caller retries.
            raise LostConnection("the channel has ended with its connection")
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        # One for all that is asked and answered: each has its connection from the pool.
        if self._talking is None or self._talking.connection_pool is not self.pool:  # type: ignore[attr-defined]
            self._talking = super()._create_client()  # type: ignore[misc]
        return self._talking

    heard_by = 0
    """How many have heard the last word that went to all who listen."""

    _unacknowledged: frozenset[str] | set[str] = frozenset()
    """Queues whose consumer acknowledges nothing: what is delivered is done with."""

    active_fair_queues: Sequence[str] = ()
    """The fair queues that are consumed here. Every turn of the loop asks."""

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> Any:
        result = super().basic_consume(queue, no_ack, *args, **kwargs)  # type: ignore[misc]
        self._note_active()
        self._unacknowledged = self._unacknowledged - {queue} | ({queue} if no_ack else set())
        return result

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack, **kwargs)  # type: ignore[misc]
        if message is not None and no_ack and queue in self.fair_queues:
            self.qos.delivered(message.delivery_tag)  # type: ignore[attr-defined]
        return message

    def _note_active(self) -> None:
        active = self.active_queues
        self.active_fair_queues = [queue for queue in active if queue in self.fair_queues]
        self._in_turn = list(active)

    # --- publishing --------------------------------------------------------------------

    def create_publish_batch(self, max_size: int) -> PublishBatch:
        return PublishBatch(self, max_size)

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        if queue not in self.fair_queues:
            self._mended([queue], partial(super()._put, queue, message, **kwargs))  # type: ignore[misc]
            return
        group = address(message, now=datetime.now(UTC)).group(redis.dumps(message))
        batch = kwargs.get("_publish_batch")
        if batch is not None:
            batch.add_fair(queue, group)
        else:
            with self.conn_or_acquire() as client:
                scripts.run(client, queue, "enqueue", *group)

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **kwargs: Any) -> None:
        if kwargs.get("_publish_batch") is not None:
            super()._put_fanout(exchange, message, routing_key, **kwargs)  # type: ignore[misc]
            return
        topics, payload = self._get_publish_topics(exchange, routing_key), redis.dumps(message)  # type: ignore[attr-defined]
        with self.conn_or_acquire() as client:
            self.heard_by = sum(client.publish(topic, payload) for topic in topics)

    def _purge(self, queue: str) -> int:
        removed = 0
        if queue in self.fair_queues:
            with self.conn_or_acquire() as client:
                while count := scripts.run(client, queue, "purge", 1_000):
                    removed += count
        return removed + int(self._mended([queue], super()._purge, queue))  # type: ignore[misc]

    def _size(self, queue: str) -> int:
        return int(self._mended([queue], super()._size, queue))  # type: ignore[misc]

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        if queue in self.fair_queues:
            self._purge(queue)
            with self.conn_or_acquire() as client:
                scripts.run(client, queue, "delete")
        super()._delete(queue, *args, **kwargs)  # type: ignore[misc]

    def get_table(self, exchange: str) -> list[tuple[str, ...]]:
        with self.conn_or_acquire() as client:
            return bindings(client, self.keyprefix_queue % exchange, self.sep)  # type: ignore[attr-defined]

    def _queue_bind(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._queue_bind(*args, **kwargs)  # type: ignore[misc]
        except ResponseError:
            with self.conn_or_acquire() as client:
                if not put_aside_bindings(client, self):
                    raise
            return super()._queue_bind(*args, **kwargs)  # type: ignore[misc]

    def _lookup(self, exchange: str, routing_key: str, *args: Any, **kwargs: Any) -> list[str]:
        found: list[str] = super()._lookup(exchange, routing_key, *args, **kwargs)  # type: ignore[misc]
        # Bindings that somebody has removed: Celery's own exchange of a queue has its name.
        return found or ([routing_key] if exchange == routing_key else [])

    # --- taking ------------------------------------------------------------------------

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
        while self.qos.can_take():  # type: ignore[attr-defined]
            now = monotonic()
            queue = next(
                (name for name in self._in_turn if self._waits.get(name, 0.0) <= now), None
            )
            if queue is None:
                return True
            room = self.qos.room()  # type: ignore[attr-defined]
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
        if not self.qos.can_take():  # type: ignore[attr-defined]
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
            self._mended([queue], adopt, self, queue)
        if taken.sleep_seconds is None and not taken.messages:
            # More, but nothing for a window without a free slot; or too much to look through.
            self.qos.head_waits = True  # type: ignore[attr-defined]
            return AT_ONCE_SECONDS
        return None if taken.sleep_seconds is None else float(taken.sleep_seconds)

    def _take_stock(self, queue: str) -> float | None:
        """Take one message of a stock queue, as Kombu does."""
        try:
            message = self._mended([queue], super()._get, queue)  # type: ignore[misc]
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
                self.qos.delivered(tag)  # type: ignore[attr-defined]
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

    # --- waiting -----------------------------------------------------------------------

    def _wait(self, fair: Sequence[str], seconds: float) -> None:
        """Block on the wake-ups of the fair queues, and on the stock queues as Kombu does.

        A wake-up looks like a message, for which `_woken` is called in place of a consumer.
        """
        wakes = [queue_key(queue, "wake") for queue in fair]
        for key in wakes:
            self.connection._callbacks[key] = _woken
        stock = [
            queue
            for queue in self._queue_cycle.consume(len(self.active_queues))  # type: ignore[attr-defined]
            if queue not in fair
        ]
        plain = [
            self._q_for_pri(queue, step)  # type: ignore[attr-defined]
            for step in self.priority_steps  # type: ignore[attr-defined]
            for queue in stock
        ]
        if plain:
            seconds = min(seconds, STOCK_WAIT_SECONDS)
        self._waits_for_stock = bool(plain)
        self._waits_for_fair = True
        self._in_poll = self.client.connection
        self._brpop_sent_at = monotonic()
        self.client.connection.send_command("BRPOP", *wakes, *plain, seconds)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            result = self._read(**options)
        except self.connection_errors as error:  # type: ignore[attr-defined]
            if self.client.connection.is_connected or not self.connection.cycle.outlives(error):
                raise
            raise Empty from error
        except Empty:
            self.connection.cycle.answered()
            raise
        self.connection.cycle.answered()
        return result

    def _receive(self) -> Any:
        try:
            return super()._receive()  # type: ignore[misc]
        except self.connection_errors as error:  # type: ignore[attr-defined]
            if self._in_listen is not None or not self.connection.cycle.outlives(error):
                raise
            raise Empty from error

    def _read(self, **options: Any) -> Any:
        if self._pending_take is not None:
            return self._end_take(self._pending_take)
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except ResponseError as error:
            self._mend(self.active_queues, error)
            # As when nothing has come in time: the next turn of the loop takes, and finds what a
            # stock queue has.
            raise Empty from error
        except SHAPE_ERRORS as error:
            # A wake-up that somebody else has made, or junk in a stock queue: it is gone there.
            logger.error("what came was no message: %.500r", error)  # noqa: TRY400  their bytes
            raise Empty from error

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)  # type: ignore[misc]
        except Empty:
            return None
        except Exception as error:
            # Kombu counts KeyError among the errors of a connection.
            lost = (*self.connection_errors, OperationalError)  # type: ignore[attr-defined]
            if isinstance(error, lost) and not isinstance(error, SHAPE_ERRORS):
                raise
            # Anybody can say anything to all, and Celery's listeners raise what they like.
            logger.error("what was said to all was not understood: %.500r", error)  # noqa: TRY400
            return None

    def _mended(self, queues: Sequence[str], act: Callable[..., Any], *arguments: Any) -> Any:
        """Do what asks the server without a script; once more when a key had the wrong type."""
        try:
            return act(*arguments)
        except ResponseError as error:
            self._mend(queues, error)
            return act(*arguments)

    def _mend(self, queues: Sequence[str], error: ResponseError) -> None:
        """Mend these queues; raise an error about something else."""
        if not is_wrong_type(error):
            raise error
        with self.conn_or_acquire() as client:
            # Each of them: it is not said which one has the key.
            for queue in queues:
                if queue in self.fair_queues:
                    mend(client, queue)
            put_aside_wrong(client, lists_of(set(queues) - set(self.fair_queues), self))

    def _basic_cancel(self, consumer_tag: str) -> Any:
        queue = self._tag_to_queue.get(consumer_tag)  # type: ignore[attr-defined]
        result = super()._basic_cancel(consumer_tag)  # type: ignore[misc]
        self._note_active()
        if queue in self.fair_queues:
            if self._pending_take is not None and self._pending_take.queue == queue:
                # Its messages are for other workers now, and not when the pool has drained.
                self._close_take(self._pending_take)
            self._give_back_arrived(queue)
        if queue in self.fair_queues and not self._closing:
            # A wake-up that is on its way to us is for somebody else now.
            with self.conn_or_acquire() as client:
                scripts.run(client, queue, "rouse", self.leases.worker)
        return result

    def _give_back_arrived(self, queue: str) -> None:
        for _queue, tag, _raw in [each for each in self._arrived if each[0] == queue]:
            self.leases.give_back(tag)
        self._arrived = deque(each for each in self._arrived if each[0] != queue)

    def settle(self, *, waits: bool = True) -> None:
        """Say what is due of what this process holds; wait until it has been heard, or not."""
        due = self.leases.due()
        if due or self.leases.is_to_hear:
            with self.conn_or_acquire() as client:
                say = self.leases.say if waits else self.leases.say_ahead
                say(client, due)

    def settle_all(self) -> None:
        """Say all that this process has to say of what it holds, and wait until it is heard."""
        if self.leases.has_unsaid:
            with self.conn_or_acquire() as client:
                self.leases.say(client)

    def close(self) -> None:
        if self._pending_take is not None:
            self._close_take(self._pending_take)
        # First: what follows asks the server, and ends there when that is gone.
        self.leases.give_back_unstarted(self.holder)
        if not self.leases.has_worker:
            # A worker's loop says it, also when this connection is lost.
            try:
                self.settle_all()
            except self.connection_errors as error:  # type: ignore[attr-defined]
                logger.warning("what was not acknowledged in time comes again: %r", error)
        if self._in_poll and self._waits_for_fair and not self._waits_for_stock:
            # Nothing but a wake-up can be under way: no need to wait for the end of the sleep. Its
            # consumers may be gone by now.
            connection, self._in_poll = self._in_poll, None
            connection.disconnect()
        # Kombu asks the server once more after it has let go of its connections.
        try:
            super().close()  # type: ignore[misc]
        finally:
            self._disconnect_pools()  # type: ignore[attr-defined]

    def _close_take(self, pending: PendingTake) -> None:
        """Hear what a take has brought, so that it can go back at once; not for long."""
        try:
            if pending.connection.is_connected and pending.connection.can_read(CLOSE_SECONDS):
                self._end_take(pending)
        except self.connection_errors as error:  # type: ignore[attr-defined]
            logger.info("a take was not answered any more: %r", error)
        if self._pending_take is not None:
            pending.connection.disconnect()
            self._pending_take, self._in_poll = None, None

    _waits_for_fair = False
    _waits_for_stock = False
    _pending_take: PendingTake | None = None


class Channel(FairQueues, redis.Channel):  # type: ignore[misc]
    """Kombu's Redis channel with fair queues."""

    from_transport_options: Any = (*redis.Channel.from_transport_options, *OPTIONS)


def _woken(_token: object) -> None:
    """Nothing: the next turn of the loop takes."""
