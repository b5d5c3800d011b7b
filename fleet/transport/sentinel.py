"""The channel behind Redis Sentinel: `sentinel://` URLs."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from functools import partial
from typing import Any, Final

from kombu.transport import redis
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from fleet.transport.channel import OPTIONS, Channel

SENTINEL_SECONDS: Final = 5.0

Address = tuple[str, int]
_answered: dict[tuple[frozenset[Address], str], Address] = {}
"""By Sentinels and the name of their master: the one that answered last in this process."""


class SentinelChannel(Channel, redis.SentinelChannel):
    """Kombu's channel behind Sentinel, with fair queues."""

    master_name: str | None = None
    sentinel_kwargs: dict[str, Any] | None = None

    from_transport_options: Any = (*redis.SentinelChannel.from_transport_options, *OPTIONS)

    def _broker(self, given: Any) -> Hashable:
        # The same for every Sentinel: a connection moves to the next one if its server is lost.
        sentinels = frozenset(given.alt or [(given.hostname, given.port)])
        name = given.transport_options.get("master_name")
        return (sentinels, name, given.virtual_host)

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> Any:
        """Return a pool that asks the next Sentinel at once if one is down, and last from then on.

        By default, redis-py retries each one ten times, for seconds, at each new connection; and
        each pool begins with the first one of the URL, also while that one's machine is lost.
        """
        own = {
            "socket_timeout": self.socket_timeout or SENTINEL_SECONDS,
            "socket_connect_timeout": self.socket_connect_timeout or SENTINEL_SECONDS,
            "retry": Retry(NoBackoff(), 0),
        }
        self.sentinel_kwargs = {**own, **(self.sentinel_kwargs or {})}
        pool = super()._sentinel_managed_pool(asynchronous)
        sentinel: Any = self._async_sentinel_manager if asynchronous else self._sentinel_manager
        sentinel.discover_master = partial(discover_master, sentinel)
        return pool


def discover_master(sentinel: Sentinel, name: str) -> Address:
    """Return the master's address; ask the Sentinel first that answered last in this process."""
    key = frozenset(map(_address, sentinel.sentinels)), name
    last = _answered.get(key)
    # A copy: threads share a pool, and redis-py moves the Sentinel that answers to the front.
    asked = copy.copy(sentinel)
    asked.sentinels = sorted(sentinel.sentinels, key=lambda one: _address(one) != last)
    found = Sentinel.discover_master(asked, name)
    _answered[key] = _address(asked.sentinels[0])
    return found


def _address(client: Redis) -> Address:
    given = client.connection_pool.connection_kwargs
    return given["host"], given["port"]
