"""Kombu's Redis transport with fair queues, and the same behind Redis Sentinel."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from kombu.asynchronous import set_event_loop
from kombu.transport import redis

from fleet.transport.channel import Channel
from fleet.transport.poller import Poller
from fleet.transport.sentinel import SentinelChannel


class Transport(redis.Transport):
    """Kombu's Redis transport; the queues of the option `fair_queues` are fair."""

    Channel = Channel

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.cycle: Any = Poller()
        self._pid = os.getpid()

    def _collect(self, connection: Any) -> None:
        """Close a pool's connection; in a process that was forked since, leave it alone.

        There, its sockets are copies: to read one that waits would never end, and to stop watching
        it would stop the first process, which has the same list of watched sockets.
        """
        if connection is not None and os.getpid() == self._pid:
            self.close_connection(connection)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self.cycle.is_in_loop = True
        super().register_with_event_loop(connection, loop)
        # A lost connection unsets Kombu's event loop, although it still turns.
        set_event_loop(loop)


class SentinelTransport(Transport):
    """The same behind Redis Sentinel: `sentinel://` URLs."""

    Channel: Any = SentinelChannel
    default_port: Any = 26379


def fair_queues(app: Celery) -> tuple[str, ...]:
    """Return the names of an app's fair queues."""
    return tuple(app.conf.broker_transport_options.get("fair_queues", ()))
