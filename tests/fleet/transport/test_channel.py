"""fleet/transport/channel.py: channels that end."""

import gc
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from celery import current_app

from fleet.keys import queue_key
from fleet.transport.taking import HAND_OVER_AT_ONCE

QUEUE = "jobs"


def sockets() -> int:
    names = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            names.append(os.readlink(link))
    return sum(name.startswith("socket:") for name in names)


@pytest.mark.usefixtures("broker")
def test_a_closed_channel_leaves_no_socket_behind() -> None:
    """A worker closes one with each lost connection, and may live for months."""
    gc.disable()
    try:
        before = sockets()
        kept = []
        for _ in range(3):
            with current_app.connection_for_read() as connection:
                channel = connection.channel()
                channel.basic_consume(QUEUE, no_ack=False, callback=print, consumer_tag="1")
                channel.client.ping()
                kept.append(channel)  # as whatever still names it does
        assert sockets() == before
    finally:
        gc.enable()


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_channel_closes_while_it_waits(*, is_cancelled: bool) -> None:
    """A stopping worker cancels its consumers first, and would otherwise sleep for seconds."""
    with current_app.connection_for_read() as connection:
        channel = connection.channel()
        channel.basic_consume(QUEUE, no_ack=False, callback=print, consumer_tag="1")
        channel.qos.prefetch_count = 1
        poller = connection.transport.cycle
        poller.add(channel)
        while not channel._in_poll:
            poller._register_BRPOP(channel)
        if is_cancelled:
            channel.basic_cancel("1")
        began_at = time.monotonic()
        channel.close()
    assert time.monotonic() - began_at < 0.5


def test_a_channel_takes_no_more_than_it_deals_with(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a batch is at hand, the next owner is not chosen yet."""
    monkeypatch.setattr("fleet.transport.taking.HAND_OVER_SECONDS", 10.0)
    delivered: list[object] = []
    for _ in range(3 * HAND_OVER_AT_ONCE):
        current_app.send_task("tests.add")
    with current_app.connection_for_read() as connection:
        channel = connection.channel()
        channel.basic_consume(QUEUE, no_ack=False, callback=delivered.append, consumer_tag="1")

        def take(slots: int) -> int:
            channel.qos.prefetch_count = slots
            channel._brpop_start()
            return int(broker.hlen(queue_key(QUEUE, "held", channel.leases.worker)))

        assert take(2 * HAND_OVER_AT_ONCE) == 2 * HAND_OVER_AT_ONCE
        assert take(2 * HAND_OVER_AT_ONCE + 5) == 2 * HAND_OVER_AT_ONCE
        channel.hand_over_some()
        assert len(delivered) == HAND_OVER_AT_ONCE
        assert take(2 * HAND_OVER_AT_ONCE + 5) == 2 * HAND_OVER_AT_ONCE + 5


def test_a_message_that_cannot_be_dealt_with_is_put_aside(broker: redis.Redis) -> None:
    """Whatever its consumer raises: a result store may refuse an outcome without a name."""

    class Refused(Exception):
        pass

    def consumer(_message: object) -> None:
        raise Refused

    for _ in range(2):
        current_app.send_task("tests.add")
    with current_app.connection_for_read() as connection:
        channel = connection.channel()
        channel.basic_consume(QUEUE, no_ack=False, callback=consumer, consumer_tag="1")
        channel.qos.prefetch_count = 2
        channel._brpop_start()
        while channel.hand_over_some():
            pass  # a slow machine hands over one at a time
        assert broker.llen(queue_key(QUEUE, "quarantine")) == 2
        assert broker.hlen(queue_key(QUEUE, "held", channel.leases.worker)) == 0
