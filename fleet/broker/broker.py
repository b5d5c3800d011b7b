"""Publishes and withdraws hints, and counts the messages of a queue.

A publish has a deadline. After a failure, further calls fail at once for a short time.

Hints in the outbox need not be published now: the sweep publishes what is left. So their callers do
not wait long for a connection. A thread opens it, and a later call uses it. The same holds for all
callers after a failure.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, Final

from celery import Celery
from kombu import Connection
from redis import Redis
from redis.exceptions import ConnectionError as LostConnection

from fleet.broker.opening import open_connection
from fleet.broker.sender import Sender
from fleet.broker.unawaited import Receipt, Unawaited
from fleet.broker.waiting import waiting_in
from fleet.contract import BrokerUnavailable, Hint
from fleet.transport import scripts
from fleet.transport.envelope import hint_id
from fleet.transport.password import refuses_password
from fleet.transport.transport import fair_queues

PAUSE_AFTER_FAILURE: Final = 2.0
CONNECT_PATIENCE: Final = 0.25
RECONNECT_PATIENCE: Final = 0.1
"""Seconds that a caller waits for a thread to open a connection: the first, or one after a failure.

Callers whose hints are in no outbox wait for the first one as long as their `timeout`.
"""
CHUNK: Final = 500


class Broker:
    """A process's connection to the broker. Safe for threads and forks."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._sender = Sender(app)
        self._begin()
        # A fork may copy the lock while another thread holds it.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._unawaited: Unawaited | None = None
        self._resume_at = 0.0
        self._opening: Future[Connection] | None = None
        self.refuses_password = False
        """Redis has refused the password at the last try to connect."""

    def publish(
        self, hints: Sequence[Hint], *, timeout: float, are_in_outbox: bool = False
    ) -> None:
        """Publish all hints within `timeout` seconds, or raise BrokerUnavailable."""
        deadline = time.monotonic() + timeout
        with self._channel(timeout=timeout, is_patient=not are_in_outbox) as channel:
            self._sender.send(channel, hints, until=deadline)

    def post(self, hints: Sequence[Hint], receipt: Receipt, *, timeout: float) -> Sequence[Receipt]:
        """Send hints in the outbox, without waiting for the reply; return the receipts that came.

        This receipt comes with a later call, or never. Raises BrokerUnavailable when Redis is away,
        or has not answered an earlier call within `timeout` seconds.
        """
        with self._channel(timeout=timeout, is_patient=False) as channel:
            arrived = self._collect(timeout=timeout)
            calls = self._sender.calls(channel, hints)
            if calls is None:
                self._sender.send(channel, hints, until=time.monotonic() + timeout)
                return [*arrived, receipt]
            if self._unawaited is None:
                with channel.conn_or_acquire() as client:
                    self._unawaited = Unawaited(client)
            self._unawaited.send(calls, receipt)
            return arrived

    def _collect(self, *, timeout: float) -> Sequence[Receipt]:
        if self._unawaited is None:
            return ()
        try:
            return self._unawaited.collect(timeout=timeout)
        except (LostConnection, ConnectionError):
            # A new one is opened at once. What was sent over this one may not have arrived.
            self._unawaited.close()
            self._unawaited = None
            return ()

    def withdraw(self, queue: str, hints: Sequence[tuple[str, int]], *, timeout: float) -> None:
        """Remove unleased hints, by run and token, from a fair queue; do nothing on a stock queue.

        Their rows would refuse them, but each would take a turn first.
        """
        if queue not in fair_queues(self._app):
            return
        ids = [hint_id(run_id, token) for run_id, token in hints]
        with self.client(timeout=timeout) as client:
            for start in range(0, len(ids), CHUNK):
                scripts.run(client, queue, "withdraw", *ids[start : start + CHUNK])

    def backlog(self, queue: str, *, timeout: float) -> int:
        """Return the ready messages of a queue, priority lists included."""
        with self._channel(timeout=timeout) as channel:
            return int(channel._size(queue))

    def waiting_tasks(self, queue: str, *, timeout: float) -> set[str]:
        """Return the names of the tasks with a message in a queue; reads all of them."""
        is_fair = queue in fair_queues(self._app)
        with self._channel(timeout=timeout) as channel:
            return {message.task for message in waiting_in(channel, queue, is_fair=is_fair)}

    @contextmanager
    def client(self, *, timeout: float) -> Iterator[Redis]:
        """Give the Redis client to one caller at a time; errors become BrokerUnavailable."""
        with self._channel(timeout=timeout) as channel:
            yield channel.client

    @contextmanager
    def _channel(self, *, timeout: float, is_patient: bool = True) -> Iterator[Any]:
        """Give the channel to one caller at a time; errors become BrokerUnavailable.

        A patient caller waits for the first connection for up to `timeout` seconds.
        """
        is_long = is_patient or self._connection is not None
        if not self._lock.acquire(timeout=timeout if is_long else min(timeout, CONNECT_PATIENCE)):
            raise BrokerUnavailable("another caller still waits for the broker")
        try:
            # After the lock: the caller that held it may have failed.
            if time.monotonic() < self._resume_at:
                raise BrokerUnavailable("the broker failed a moment ago")
            if self._connection is None:
                self._connection = self._connect(timeout=timeout, is_patient=is_patient)
                self.refuses_password = False
            yield self._connection.default_channel
        except BrokerUnavailable:
            raise
        except Exception as error:
            # Kombu, redis-py and sockets raise different classes.
            self._drop(pause=PAUSE_AFTER_FAILURE)
            self.refuses_password = refuses_password(error)
            raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error
        finally:
            self._lock.release()

    def _connect(self, *, timeout: float, is_patient: bool) -> Connection:
        is_long = is_patient and not self._resume_at
        opening, patience = self._opening, timeout if is_long else 0.0
        if opening is None:
            if is_long:
                return open_connection(self._app, timeout=timeout)
            patience = min(timeout, RECONNECT_PATIENCE if self._resume_at else CONNECT_PATIENCE)
            opening = self._opening = Future()
            threading.Thread(target=self._open_for, args=(opening, timeout), daemon=True).start()
        if not wait([opening], patience).done:
            raise BrokerUnavailable("a connection to the broker is not open yet")
        self._opening = None
        return opening.result()

    def _open_for(self, opening: Future[Connection], timeout: float) -> None:
        """Open a connection in a thread, for the caller that comes next."""
        try:
            connection = open_connection(self._app, timeout=timeout)
        except Exception as error:
            # Not left to the next caller: by then, the failure may be long ago.
            self._resume_at = time.monotonic() + PAUSE_AFTER_FAILURE
            self.refuses_password = refuses_password(error)
            self._opening = None
            opening.set_exception(error)
        else:
            opening.set_result(connection)

    def _drop(self, *, pause: float) -> None:
        connection, self._connection = self._connection, None
        self._unawaited = None
        self._resume_at = time.monotonic() + pause
        if connection is not None:
            connection.release()
