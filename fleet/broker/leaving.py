"""Leaves Redis to stock Celery: calls go from fair queues to plain lists, Fairshift's keys go away.

Run it while no worker of Fairshift does, and no process publishes to a fair queue. Each act can be
repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from celery import Celery
from kombu.exceptions import OperationalError
from kombu.transport import redis
from kombu.utils.json import dumps
from redis import Redis
from redis.exceptions import RedisError

from fleet.broker.inbox import drop
from fleet.broker.opening import open_connection
from fleet.broker.waiting import rows
from fleet.contract import BrokerUnavailable, is_hint
from fleet.keys import EVERY_KEY, queue_key
from fleet.transport import scripts
from fleet.transport.adoption import adopt
from fleet.transport.envelope import MalformedMessage, parsed
from fleet.transport.transport import fair_queues

OWN_TASKS: Final = "fairshift."
"""What the names of Fairshift's own tasks begin with."""
CHUNK: Final = 1_000


def messages_left(app: Celery, *, timeout: float) -> Counter[str]:
    """Count the messages of all fair queues: calls, hints, ours, leased, quarantined."""
    found: Counter[str] = Counter()
    with _channel(app, timeout=timeout) as (channel, client):
        for queue in fair_queues(app):
            known = list(rows(client, queue))
            found["leased"] += int(client.hlen(queue_key(queue, "meta"))) - len(known)
            found["quarantined"] += int(client.llen(queue_key(queue, "quarantine")))
            found.update(_kind(row.raw) for row in known)
            found["calls"] += sum(map(len, _not_adopted(channel, client, queue)))
    return +found


def move_calls(app: Celery, to: Mapping[str, str], *, timeout: float) -> int:
    """Move the calls that wait in fair queues to plain lists of the queues `to`, in order.

    Returns how many were moved. Hints and messages of Fairshift's own tasks stay. Reads all waiting
    messages of a queue at once.
    """
    count = 0
    with _channel(app, timeout=timeout) as (channel, client):
        for queue, target in to.items():
            while any(_not_adopted(channel, client, queue)):
                adopt(channel, queue)
            for row in sorted(rows(client, queue), key=lambda row: row.order):
                if _kind(row.raw) == "calls":
                    facts = (row.id, *_as_plain(channel, row.raw, queue=queue, target=target))
                    count += int(scripts.run(client, queue, "move", *facts))
    return count


def count_keys(app: Celery, *, timeout: float) -> int:
    """Return the number of Fairshift's keys."""
    with _channel(app, timeout=timeout) as (_, client):
        return sum(1 for _ in client.scan_iter(EVERY_KEY, count=CHUNK))


def delete_keys(app: Celery, queues: Collection[str], *, timeout: float) -> int:
    """Delete Fairshift's keys, and `queues` with their bindings; return the number of its keys.

    Messages of other tasks stay in the lists of these queues. All other keys stay.
    """
    with _channel(app, timeout=timeout) as (channel, client):
        for queue in {*queues, *fair_queues(app)}:
            _empty(channel, client, queue, is_ours=queue in queues)
        found = list(client.scan_iter(EVERY_KEY, count=CHUNK))
        for start in range(0, len(found), CHUNK):
            client.unlink(*found[start : start + CHUNK])
    return len(found)


def _empty(channel: Any, client: Redis, queue: str, *, is_ours: bool) -> None:
    """Remove placeholders and our messages from a queue's lists; then the queue, if it is ours."""
    left = 0
    for name in _lists(channel, queue):
        raws: list[Any] = client.lrange(name, 0, -1)
        gone = [raw for raw in raws if not raw or _kind(raw) == "ours"]
        drop(client, name, [raw for raw in gone if raw])
        client.lrem(name, 0, "")
        left += len(raws) - len(gone)
    if is_ours and not left:
        # Not our own channel's, which would run scripts on the queue.
        redis.Channel._delete(channel, queue, queue, queue, "")


def _as_plain(channel: Any, raw: bytes, *, queue: str, target: str) -> tuple[str, bytes]:
    """Return the plain list of a message, and its bytes there."""
    message = parsed(raw)
    priority = channel._get_message_priority(message, reverse=False)
    if target != queue:
        # By these a worker puts it back.
        message["properties"]["delivery_info"] |= {"exchange": "", "routing_key": target}
        raw = dumps(message).encode()
    return channel._q_for_pri(target, priority), raw


def _not_adopted(channel: Any, client: Redis, queue: str) -> Iterator[list[bytes]]:
    """Yield the messages that stand before the placeholders of each list."""
    for name in _lists(channel, queue):
        raws: list[Any] = client.lrange(name, 0, -1)
        yield raws[: raws.index(b"")] if b"" in raws else raws


def _lists(channel: Any, queue: str) -> list[str]:
    return [channel._q_for_pri(queue, step) for step in channel.priority_steps]


def _kind(raw: bytes) -> str:
    try:
        headers = parsed(raw)["headers"]
    except MalformedMessage:
        return "calls"
    if is_hint(headers):
        return "hints"
    return "ours" if str(headers.get("task")).startswith(OWN_TASKS) else "calls"


@contextmanager
def _channel(app: Celery, *, timeout: float) -> Iterator[tuple[Any, Redis]]:
    """Give a channel and its client; errors become BrokerUnavailable."""
    try:
        with open_connection(app, timeout=timeout) as connection:
            channel = connection.default_channel
            with channel.conn_or_acquire() as client:
                yield channel, client
    except (ConnectionError, OperationalError, RedisError) as error:
        raise BrokerUnavailable(f"{type(error).__name__}: {error}") from error
