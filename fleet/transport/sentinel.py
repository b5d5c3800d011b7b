"""The channel behind Redis Sentinel: `sentinel://` URLs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from kombu.transport import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fleet.transport.channel import OPTIONS, FairQueues

SENTINEL_SECONDS: Final = 5.0


class SentinelChannel(FairQueues, redis.SentinelChannel):  # type: ignore[misc]
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
        """Return a pool that asks the next Sentinel at once if one is down.

        By default, redis-py retries each one ten times, for seconds, at each new connection.
        """
        own = {
            "socket_timeout": self.socket_timeout or SENTINEL_SECONDS,
            "socket_connect_timeout": self.socket_connect_timeout or SENTINEL_SECONDS,
            "retry": Retry(NoBackoff(), 0),
        }
        self.sentinel_kwargs = {**own, **(self.sentinel_kwargs or {})}
        return super()._sentinel_managed_pool(asynchronous)
