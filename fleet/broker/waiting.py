"""Lists the messages of a queue that no worker has: of a fair queue, or of a plain one.

A fair queue's list in Redis has an empty placeholder for each message, so `LRANGE` shows none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from celery import Celery
from celery.exceptions import ImproperlyConfigured
from kombu.exceptions import OperationalError
from kombu.transport import redis
from redis.exceptions import RedisError

from fleet.broker.opening import open_connection
from fleet.contract import BrokerUnavailable
from fleet.transport import scripts
from fleet.transport.envelope import MalformedMessage, parsed
from fleet.transport.transport import fair_queues

PAGE: Final = 500
"""Messages that are read at a time."""

State = Literal["ready", "parked", "delayed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingMessage:
    """A call of a task that no worker has.

    `id` is the task id, which is the run's for a durable run. `headers` are those of Celery's
    protocol, such as `argsrepr`, `eta` and `root_id`; those of a durable run have no arguments.
    `state` is parked behind a lock, delayed by an ETA, or else ready. A plain queue has ready ones.
    """

    id: str
    task: str
    headers: Mapping[str, Any]
    state: State


class Row(NamedTuple):
    """A waiting message of a fair queue; the lowest order is served first."""

    id: str
    state: State
    order: int
    raw: bytes


def waiting_messages(app: Celery, queue: str, *, timeout: float = 5.0) -> Iterator[WaitingMessage]:
    """Return what waits in a queue, fair or plain, of every priority; reads a page at a time.

    In no order. A message that waits until the last page has been read is returned at least once,
    and perhaps twice while the queue changes. Messages that are no calls of tasks are left out.
    Changes nothing. Raises BrokerUnavailable if Redis does not answer within `timeout` seconds, and
    ImproperlyConfigured for another broker than Redis.
    """
    try:
        with open_connection(app, timeout=timeout) as connection:
            channel = connection.default_channel
            if not isinstance(channel, redis.Channel):
                raise ImproperlyConfigured(
                    f"the broker's transport is {connection.transport_cls!r}: only queues in Redis"
                    " can be listed"
                )
            yield from waiting_in(channel, queue, is_fair=queue in fair_queues(app))
    except (ConnectionError, OperationalError, RedisError) as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error


def waiting_in(channel: Any, queue: str, *, is_fair: bool) -> Iterator[WaitingMessage]:
    """Return what `waiting_messages` returns, over a channel."""
    with channel.conn_or_acquire() as client:
        # The lists first: what a worker adopts meanwhile is found in both places, and not in none.
        for step in channel.priority_steps:
            for raw in _in_list(client, channel._q_for_pri(queue, step)):
                if not raw and is_fair:
                    break  # the placeholders begin here
                yield from _read(raw, "ready")
        if is_fair:
            for row in rows(client, queue):
                yield from _read(row.raw, row.state)


def _in_list(client: Any, name: str) -> Iterator[bytes]:
    # Kombu adds at the head and takes at the tail: what is added meanwhile moves messages to later
    # pages, and what is taken moves none.
    first = 0
    while page := client.lrange(name, first, first + PAGE - 1):
        yield from page
        first += PAGE


def rows(client: Any, queue: str) -> Iterator[Row]:
    """Return the messages of a fair queue that no worker has, as Redis stores them."""
    cursor: Any = b"0"
    while True:
        cursor, *found = scripts.run(client, queue, "waiting", cursor, PAGE)
        for id_, state, order, raw in zip(*(found[at::4] for at in range(4)), strict=True):
            yield Row(id_.decode(), state.decode(), int(order), raw)
        if cursor == b"0":
            return


def _read(raw: bytes, state: State) -> Iterator[WaitingMessage]:
    try:
        headers = parsed(raw)["headers"]
    except MalformedMessage:
        return
    task_id, task = headers.get("id"), headers.get("task")
    if isinstance(task_id, str) and isinstance(task, str):
        yield WaitingMessage(id=task_id, task=task, headers=headers, state=state)
