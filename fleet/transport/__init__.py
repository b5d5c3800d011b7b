"""The fair transport: one Celery queue that stands for the queues of many owners."""

from __future__ import annotations

from typing import Any, Final

from celery import Celery, signals
from kombu import transport as kombu_transport
from kombu.asynchronous import set_event_loop
from kombu.transport import redis

from fleet.transport.channel import Channel
from fleet.transport.poller import Poller
from fleet.transport.sentinel import SentinelChannel

SCHEMES: Final = {
    "redis": "fleet.transport:Transport",
    "rediss": "fleet.transport:Transport",
    "sentinel": "fleet.transport:SentinelTransport",
}


class Transport(redis.Transport):
    """Kombu's Redis transport; the queues of the option `fair_queues` are fair."""

    Channel = Channel

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.cycle: Any = Poller()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self.cycle.is_in_loop = True
        super().register_with_event_loop(connection, loop)
        # A lost connection closes the loop, and Kombu then knows of none; it goes on all the same.
        set_event_loop(loop)


class SentinelTransport(Transport):
    """The same behind Redis Sentinel: `sentinel://` URLs."""

    Channel: Any = SentinelChannel
    default_port: Any = 26379


def register() -> None:
    """Have Kombu use this transport for the URLs of Redis, in this process.

    By the URL's scheme and not by Celery's `broker_transport`, which makes `redis+socket://`
    silently stock, `sentinel://` the wrong class, and the URL unreadable for Flower.
    """
    kombu_transport.TRANSPORT_ALIASES.update(SCHEMES)
    for scheme in SCHEMES:
        kombu_transport._transport_cache.pop(scheme, None)
    # Sent by every worker, also one of `celery.contrib.testing`, before its steps are chosen.
    signals.worker_init.connect(_add_step, weak=False)


def _add_step(sender: Any, **_signal: Any) -> None:
    """Give a worker that is about to boot the step without which its leases would lapse."""
    from fleet.worker.leasing import FairQueues

    if fair_queues(sender.app):
        sender.app.steps["worker"].add(FairQueues)


def fair_queues(app: Celery) -> tuple[str, ...]:
    """Return the names of an app's fair queues."""
    return tuple(app.conf.broker_transport_options.get("fair_queues", ()))
