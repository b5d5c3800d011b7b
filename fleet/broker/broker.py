"""Publishes and withdraws hints, and counts the messages of a queue.

A publish has a deadline. After a failure, further calls fail at once for a short time,
unless Redis answers and only refuses to write.

Hints in the outbox need not be published now: the sweep publishes what is left. So their callers do
not wait long for a connection. A thread opens it and sends the hints that wait for it, and a later
call uses it. The same holds for all callers after a failure.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from celery import Celery
from kombu import Connection
from redis import Redis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import ResponseError

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
MOST_WAITING: Final = 10_000
"""Hints of the outbox that wait for a connection at most; the sweep publishes the others."""

_REFUSES_WRITES: Final = re.compile(r"used memory > 'maxmemory'|\bMISCONF\b")
"""Errors of a Redis that is full, or cannot save. It answers, and the connection is sound."""

Send = Callable[[Any], object]
"""Sends hints on a channel."""


class NotOpenYet(BrokerUnavailable):
    """A thread opens the connection, and sends then what waits for it."""


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
        self._waiting: list[tuple[int, Send]] = []
        """What the thread that opens the connection sends, with the number of hints."""
        self._guard = threading.Lock()
        """Held for moments: for `_opening` and `_waiting`."""

    def publish(
        self, hints: Sequence[Hint], *, timeout: float, are_in_outbox: bool = False
    ) -> None:
        """Publish all hints within `timeout` seconds, or raise BrokerUnavailable.

        Hints in the outbox may arrive all the same, when the connection is open.
        """
        deadline = time.monotonic() + timeout
        try:
            with self._channel(timeout=timeout, is_patient=not are_in_outbox) as channel:
                self._sender.send(channel, hints, until=deadline)
        except NotOpenYet:
            if are_in_outbox:
                self._send_when_open(len(hints), partial(self._sender.send, hints=hints))
            raise  # the caller counts what has arrived

    def post(self, hints: Sequence[Hint], receipt: Receipt, *, timeout: float) -> Sequence[Receipt]:
        """Send hints in the outbox, without waiting for the reply; return the receipts that came.

        This receipt comes with a later call, or never. Raises BrokerUnavailable when Redis is away,
        or has not answered an earlier call within `timeout` seconds. While the first connection is
        not open, hints wait for it.
        """
        post = partial(self._post, hints=hints, receipt=receipt, timeout=timeout)
        try:
            with self._channel(timeout=timeout, is_patient=False) as channel:
                return [*self._collect(timeout=timeout), *post(channel)]
        except NotOpenYet:
            if self._send_when_open(len(hints), post):
                return ()
        # It has just been opened, or has failed.
        return self.post(hints, receipt, timeout=timeout)

    def _post(
        self, channel: Any, *, hints: Sequence[Hint], receipt: Receipt, timeout: float
    ) -> Sequence[Receipt]:
        calls = self._sender.calls(hints)
        if calls is None:
            self._sender.send(channel, hints, until=time.monotonic() + timeout)
            return (receipt,)
        if self._unawaited is None:
            with channel.conn_or_acquire() as client:
                self._unawaited = Unawaited(client)
        self._unawaited.send(calls, receipt)
        return ()

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
            waits = "another caller still waits for the broker"
            raise BrokerUnavailable(waits) if is_long else NotOpenYet(waits)
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
            if not (isinstance(error, ResponseError) and _REFUSES_WRITES.search(str(error))):
                self._drop(pause=PAUSE_AFTER_FAILURE)
            self.refuses_password = refuses_password(error)
            raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error
        finally:
            self._lock.release()

    def _connect(self, *, timeout: float, is_patient: bool) -> Connection:
        is_long = is_patient and not self._resume_at
        patience = RECONNECT_PATIENCE if self._resume_at else CONNECT_PATIENCE
        with self._guard:
            opening = self._opening
            if opening is None:
                opening = self._opening = Future()
                begin = partial(self._open_for, opening, timeout)
                threading.Thread(target=begin, daemon=True).start()
            else:
                patience = 0.0
        if not wait([opening], timeout if is_long else min(timeout, patience)).done:
            text = "a connection to the broker is not open yet"
            raise TimeoutError(text) if is_long else NotOpenYet(text)
        return opening.result()

    def _open_for(self, opening: Future[Connection], timeout: float) -> None:
        """Open a connection in a thread, for those who wait for it; send the waiting hints."""
        try:
            connection = open_connection(self._app, timeout=timeout)
        except Exception as error:
            # Not left to the next caller: by then, the failure may be long ago.
            self.refuses_password = refuses_password(error)
            if self._opening is opening:
                self._resume_at = time.monotonic() + PAUSE_AFTER_FAILURE
                self._end_opening()
            opening.set_exception(error)
            return
        opening.set_result(connection)
        try:
            with self._channel(timeout=timeout) as channel:
                while waiting := self._take_waiting():
                    for _count, send in waiting:
                        send(channel)
        except BrokerUnavailable:
            if self._opening is opening:
                self._end_opening()

    def _send_when_open(self, count: int, send: Send) -> bool:
        """Have the thread that opens the connection send hints; False if it has ended.

        Raises BrokerUnavailable if too many wait.
        """
        with self._guard:
            if self._opening is None:
                return False
            if sum(each for each, _send in self._waiting) + count > MOST_WAITING:
                raise BrokerUnavailable(f"{MOST_WAITING:,} hints wait for a connection")
            self._waiting.append((count, send))
            return True

    def _take_waiting(self) -> list[tuple[int, Send]]:
        """Take what waits for the connection; without any, end its opening."""
        with self._guard:
            taken, self._waiting = self._waiting, []
            if not taken:
                self._opening = None
            return taken

    def _end_opening(self) -> None:
        """Have the next caller open another connection; the sweep publishes what waited."""
        with self._guard:
            self._opening, self._waiting = None, []

    def _drop(self, *, pause: float) -> None:
        self._end_opening()
        connection, self._connection = self._connection, None
        self._unawaited = None
        self._resume_at = time.monotonic() + pause
        if connection is not None:
            connection.release()
