"""Kombu's Redis channel, in which some queues are fair.

Scripts publish, take and settle the messages of fair queues. Everything else (fanout, reply queues,
remote control, stock queues) is Kombu's: see its `transport/redis.py`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from celery.exceptions import ImproperlyConfigured
from kombu.transport import redis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import ResponseError

from fleet import log_events
from fleet.transport import scripts
from fleet.transport.envelope import address
from fleet.transport.leases import leases_on
from fleet.transport.message import Message
from fleet.transport.pending_take import PendingTake
from fleet.transport.publish_batch import PublishBatch
from fleet.transport.qos import QoS
from fleet.transport.quarantine import Quarantine
from fleet.transport.repair import is_wrong_type, quarantine_wrong_keys
from fleet.transport.stock import bindings, lists_of, put_aside_bindings, put_aside_wrong
from fleet.transport.taking import Taking

logger = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 1.0
OPTIONS: Final = ("fair_queues", "lease_seconds", "take_most")
"""The transport options for fair queues."""


class Channel(Taking):
    """Kombu's Redis channel; the queues of the option `fair_queues` are fair."""

    from_transport_options: Any = (*redis.Channel.from_transport_options, *OPTIONS)
    QoS = QoS
    Message = Message

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        self.leases = leases_on(self._broker(connection.client))
        self.holder = object()
        self.quarantine = Quarantine(self)
        self._arrived = deque()
        self._waits = {}
        super().__init__(connection, **kwargs)
        if self.fair_queues and self.global_keyprefix:
            raise ImproperlyConfigured(
                "global_keyprefix and fair_queues do not go together: give each project a Redis "
                "database of its own"
            )

    def _broker(self, given: Any) -> Hashable:
        """Return the identity of the server that a connection leads to."""
        return (given.hostname, given.port, given.virtual_host)

    _sync_client: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if self.connection is None:
            # Kombu would raise AttributeError, which no caller retries.
            raise LostConnection("the channel has ended with its connection")
        if asynchronous:
            return super()._create_client(asynchronous=True)
        # One client is enough: each command gets its own connection from the pool.
        if self._sync_client is None or self._sync_client.connection_pool is not self.pool:
            self._sync_client = super()._create_client()
        return self._sync_client

    receiver_count = 0
    """How many subscribers have received the last fanout message."""

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> Any:
        result = super().basic_consume(queue, no_ack, *args, **kwargs)
        self._note_active()
        self._unacknowledged = self._unacknowledged - {queue} | ({queue} if no_ack else set())
        return result

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack, **kwargs)
        if message is not None and no_ack and queue in self.fair_queues:
            self.qos.ack(message.delivery_tag)
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
            self._with_repair([queue], partial(super()._put, queue, message, **kwargs))
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
            super()._put_fanout(exchange, message, routing_key, **kwargs)
            return
        topics, payload = self._get_publish_topics(exchange, routing_key), redis.dumps(message)
        with self.conn_or_acquire() as client:
            self.receiver_count = sum(client.publish(topic, payload) for topic in topics)

    def _purge(self, queue: str) -> int:
        removed = 0
        if queue in self.fair_queues:
            with self.conn_or_acquire() as client:
                while count := scripts.run(client, queue, "purge", 1_000):
                    removed += count
        return removed + int(self._with_repair([queue], super()._purge, queue))

    def _size(self, queue: str) -> int:
        return int(self._with_repair([queue], super()._size, queue))

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        if queue in self.fair_queues:
            self._purge(queue)
            with self.conn_or_acquire() as client:
                scripts.run(client, queue, "delete")
        super()._delete(queue, *args, **kwargs)

    def get_table(self, exchange: str) -> list[tuple[str, ...]]:
        with self.conn_or_acquire() as client:
            return bindings(client, self.keyprefix_queue % exchange, self.sep)

    def _queue_bind(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._queue_bind(*args, **kwargs)
        except ResponseError:
            with self.conn_or_acquire() as client:
                if not put_aside_bindings(client, self):
                    raise
            return super()._queue_bind(*args, **kwargs)

    def _lookup(self, exchange: str, routing_key: str, *args: Any, **kwargs: Any) -> list[str]:
        found: list[str] = super()._lookup(exchange, routing_key, *args, **kwargs)
        # The bindings were removed. Celery's own exchange of a queue has the queue's name.
        return found or ([routing_key] if exchange == routing_key else [])

    def _with_repair(self, queues: Sequence[str], act: Callable[..., Any], *arguments: Any) -> Any:
        """Call `act`, which runs no script; repair and repeat once if a key has the wrong type."""
        try:
            return act(*arguments)
        except ResponseError as error:
            self._repair(queues, error)
            return act(*arguments)

    def _repair(self, queues: Sequence[str], error: ResponseError) -> None:
        """Repair these queues; raise an error that is not about a key of the wrong type."""
        if not is_wrong_type(error):
            raise error
        with self.conn_or_acquire() as client:
            # All of them: the error does not name the key.
            for queue in queues:
                if queue in self.fair_queues:
                    quarantine_wrong_keys(client, queue)
            put_aside_wrong(client, lists_of(set(queues) - set(self.fair_queues), self))

    def _basic_cancel(self, consumer_tag: str) -> Any:
        queue: Any = self._tag_to_queue.get(consumer_tag)
        result = super()._basic_cancel(consumer_tag)
        self._note_active()
        if queue in self.fair_queues:
            if self._pending_take is not None and self._pending_take.queue == queue:
                # Other workers can have its messages now, before the pool has drained.
                self._close_take(self._pending_take)
            self._give_back_arrived(queue)
        if queue in self.fair_queues and not self._closing:
            # A wake-up may be on its way to this worker: wake another one.
            with self.conn_or_acquire() as client:
                scripts.run(client, queue, "rouse", self.leases.worker)
        return result

    def settle_due(self) -> None:
        """Flush the operations that are due; a later call reads the reply."""
        due = self.leases.due()
        if due or self.leases.is_collect_due:
            with self.conn_or_acquire() as client:
                self.leases.flush_async(client, due)

    def settle(self) -> None:
        """Flush all pending operations of this process, and wait for the reply."""
        if self.leases.has_pending:
            with self.conn_or_acquire() as client:
                self.leases.flush(client)

    def close(self) -> None:
        if self._pending_take is not None:
            self._close_take(self._pending_take)
        # First: the steps below raise if the server is gone.
        self.leases.give_back_unstarted(self.holder)
        if not self.leases.has_worker:
            # A worker's loop flushes even after this connection is lost.
            try:
                self.settle()
            except self.connection_errors as error:
                log_events.NOT_ACKNOWLEDGED.log(logger, error=error)
        if self._in_poll and self._waits_for_fair and not self._waits_for_stock:
            # Only a wake-up can arrive: no need to wait for the blocking command to end.
            connection, self._in_poll = self._in_poll, None
            connection.disconnect()
        # Kombu sends one more command after it has released its connections.
        try:
            super().close()
        finally:
            self._disconnect_pools()

    def _close_take(self, pending: PendingTake) -> None:
        """Receive a take's messages, to give them back at once; wait `CLOSE_SECONDS` at most."""
        try:
            if pending.connection._sock is not None and pending.connection.can_read(CLOSE_SECONDS):
                self._end_take(pending)
        except self.connection_errors as error:
            log_events.TAKE_NOT_ANSWERED.log(logger, error=error)
        if self._pending_take is not None:
            pending.connection.disconnect()
            self._pending_take, self._in_poll = None, None
