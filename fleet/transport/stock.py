"""Bytes in Kombu's own Redis keys that Kombu did not write: dropped or put aside, and logged.

Kombu does not expect them: a worker would end at each start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from redis import Redis
from redis.exceptions import ResponseError

from fleet import log_events
from fleet.keys import wrong_key
from fleet.transport.repair import KEPT_SECONDS

logger = logging.getLogger(__name__)

WORDS_OF_A_BINDING: Final = 3


def bindings(client: Redis, key: str, separator: str) -> list[tuple[str, ...]]:
    """Return an exchange's bindings, as Kombu does; remove malformed ones."""
    put_aside_wrong(client, {key: "set"})
    found: list[tuple[str, ...]] = []
    for member in client.smembers(key):
        words = tuple(_text(member).split(separator))
        if len(words) == WORDS_OF_A_BINDING:
            found.append(words)
        else:
            client.srem(key, member)
            log_events.BINDING_REMOVED.log(logger, member=member, key=key)
    return found


def drop_unacknowledged(client: Redis, keys: tuple[str, str], tag: Any, error: Exception) -> None:
    """Remove a malformed message from Kombu's two keys of unacknowledged messages."""
    log_events.UNACKNOWLEDGED_REMOVED.log(logger, tag=tag, key=keys[0], error=error)
    client.hdel(keys[0], tag)
    client.zrem(keys[1], tag)


def put_aside_wrong(client: Redis, types: dict[str, str]) -> list[str]:
    """Put keys aside whose type is wrong; return their names."""
    wrong = [key for key, kind in types.items() if _text(client.type(key)) not in (kind, "none")]
    for key in wrong:
        aside = wrong_key("kombu", key)
        try:
            client.rename(key, aside)
        except ResponseError as error:
            if "no such key" not in str(error):
                raise
            # Another worker has put it aside, or it has expired.
            continue
        client.expire(aside, KEPT_SECONDS)
        log_events.KEY_PUT_ASIDE.log(logger, key=key, expected=types[key])
    return wrong


def put_aside_bindings(client: Redis, channel: Any) -> list[str]:
    """Put all keys of bindings aside that are of the wrong type; return their names."""
    deadlines = channel.keyprefix_binding_deadlines
    start = channel.keyprefix_queue.partition("%")[0]
    names = [_text(key) for key in client.scan_iter(f"{start.rstrip('.')}*", count=1_000)]
    return put_aside_wrong(client, {name: "zset" if name == deadlines else "set" for name in names})


def free_mutex(client: Redis, key: str) -> None:
    """Remove a mutex that never expires: Kombu gives each an expiry."""
    if client.pttl(key) == -1:
        client.delete(key)


def lists_of(queues: Iterable[str], channel: Any) -> dict[str, str]:
    """Return the lists of stock queues, with their type."""
    steps = channel.priority_steps
    return {channel._q_for_pri(queue, step): "list" for queue in queues for step in steps}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
