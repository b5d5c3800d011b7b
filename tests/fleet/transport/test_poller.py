"""fleet/transport/poller.py: a lost connection is opened again in place, where that can help."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty
from types import SimpleNamespace

import pytest
from celery import current_app
from kombu import Consumer, Exchange, Queue
from redis import Redis

from fleet.transport import poller
from fleet.transport.leases import Leases
from fleet.transport.poller import Poller

LOST = ConnectionError("the connection was cut")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(poller, "monotonic", clock)
    return clock


class Channel:
    """What a poller knows of a channel."""

    def __init__(self, brokers: Sequence[str]) -> None:
        self.connection = SimpleNamespace(client=SimpleNamespace(alt=brokers))
        self.leases = Leases()
        self.holder = object()


def polling(*brokers: str, is_in_loop: bool = True) -> Poller:
    """A poller with one channel, to a server of these addresses."""
    channel = Channel(brokers)
    made = Poller()
    made.is_in_loop = is_in_loop
    made.add(channel)
    return made


def test_a_lost_connection_is_opened_again_for_a_minute(clock: Clock) -> None:
    """Then Celery's consumer starts anew."""
    one = polling("redis://a")
    assert one.outlives(LOST)
    clock.now += poller.PATIENCE_SECONDS
    assert one.outlives(LOST)
    clock.now += 0.1
    assert not one.outlives(LOST)


def test_an_answer_begins_the_minute_anew(clock: Clock) -> None:
    """A network that loses a tenth of all replies is asked for as long as it answers."""
    one = polling("redis://a")
    for _ in range(3):
        assert one.outlives(LOST)
        one.answered()
        clock.now += poller.PATIENCE_SECONDS


def test_without_an_event_loop_the_caller_gets_the_error(clock: Clock) -> None:
    """It would wait inside of its call, and knows better what to do."""
    assert not polling("redis://a", is_in_loop=False).outlives(LOST)


def test_where_celery_knows_another_broker_it_goes_there_at_once(clock: Clock) -> None:
    """`broker_url` with several addresses: they stand by for just this."""
    assert not polling("redis://a", "redis://b").outlives(LOST)


def test_what_answers_next_may_be_another_server(clock: Clock) -> None:
    """It is told what is held here before it gives more."""
    one = polling("redis://a")
    [channel] = one._channels
    channel.leases._met = {("jobs", channel.holder), ("jobs", "another")}
    assert one.outlives(LOST)
    assert channel.leases._met == {("jobs", "another")}


@pytest.mark.parametrize("is_listener_first", [False, True])
def test_connections_that_come_back_are_read_by_their_own_descriptors(
    broker: Redis, is_listener_first: bool
) -> None:
    """Each may get the number of the other, and a read from the wrong one would never end."""
    heard: list[str] = []
    said = Exchange("said", type="fanout")
    queues = [Queue("jobs"), Queue("hears", said, auto_delete=True)]
    with current_app.connection_for_read() as connection:
        channel = connection.default_channel
        cycle = channel.connection.cycle
        cycle.is_in_loop = True
        with Consumer(channel, queues, on_message=lambda message: heard.append(message.payload)):

            def turn(seconds: float = 0.1) -> None:
                cycle.on_poll_start()
                for number, event in cycle.poller.poll(seconds) or ():
                    with suppress(Empty):
                        cycle.handle_event(number, event)

            turn()
            turn()
            for kind in ("normal", "pubsub"):
                for client in broker.client_list(_type=kind):
                    if client["cmd"] in ("brpop", "subscribe", "psubscribe"):
                        broker.client_kill_filter(_id=client["id"])
            lost = cycle.poller.poll(1)
            assert len(lost) == 2
            by_kind = {cycle._fd_to_chan[number][1]: (number, event) for number, event in lost}
            for kind in ("LISTEN", "BRPOP") if is_listener_first else ("BRPOP", "LISTEN"):
                with suppress(Empty):
                    cycle.handle_event(*by_kind[kind])
            time.sleep(poller.REST_SECONDS)
            turn()
            with current_app.connection_for_write() as other:
                other.Producer().publish("hello", exchange=said, declare=[said])
            until = time.monotonic() + 5
            while not heard and time.monotonic() < until:
                turn()
    assert heard == ["hello"]
