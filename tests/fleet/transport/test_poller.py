"""fleet/transport/poller.py: a lost connection is opened again in place, where that can help."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from celery import current_app
from kombu import Consumer, Exchange, Queue
from kombu.utils.eventio import READ
from redis import Redis

from fleet.transport import poller
from fleet.transport.leases import Leases
from fleet.transport.poller import Poller

LOST = ConnectionError("the connection was cut")


class Channel:
    """The attributes of a channel that a poller uses."""

    def __init__(self, brokers: Sequence[str]) -> None:
        self.connection = SimpleNamespace(client=SimpleNamespace(alt=brokers))
        self.leases = Leases()
        self.holder = object()


def polling(*brokers: str) -> Poller:
    """A poller with one channel, to a server of these addresses."""
    made = Poller()
    made.is_in_loop = True
    made.add(Channel(brokers))
    return made


def test_a_lost_connection_is_opened_again_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then Celery's consumer starts anew."""
    now = 1_000.0
    monkeypatch.setattr(poller, "monotonic", lambda: now)
    one = polling("redis://a")
    assert one.survives(LOST)
    now += poller.PATIENCE_SECONDS
    assert one.survives(LOST)
    now += 0.1
    assert not one.survives(LOST)


def test_where_celery_knows_another_broker_it_goes_there_at_once() -> None:
    """`broker_url` with several addresses: they stand by for just this."""
    assert not polling("redis://a", "redis://b").survives(LOST)


def test_what_answers_next_may_be_another_server() -> None:
    """It is given what is held here before it hands out more."""
    one = polling("redis://a")
    [channel] = one._channels
    channel.leases._met = {("jobs", channel.holder), ("jobs", "another")}
    assert one.survives(LOST)
    assert channel.leases._met == {("jobs", "another")}


class Listening:
    """A channel in an event loop that waits for a fair queue and listens to what is said to all."""

    def __init__(self, connection: Any) -> None:
        self.said = Exchange("said", type="fanout")
        self.heard: list[str] = []
        channel = connection.default_channel
        self.cycle = channel.connection.cycle
        self.cycle.is_in_loop = True
        queues = [Queue("jobs"), Queue("hears", self.said, auto_delete=True)]
        hear = Consumer(channel, queues, on_message=lambda message: self.hear(message.payload))
        hear.consume()
        for _ in range(2):
            self.turn()

    def hear(self, word: str) -> None:
        self.heard.append(word)

    def turn(self) -> None:
        self.cycle.on_poll_start()
        self.handle(self.cycle.poller.poll(0.1) or ())

    def handle(self, events: Iterable[tuple[int, int]]) -> None:
        for number, event in events:
            with suppress(Empty):
                self.cycle.handle_event(number, event)

    def number(self, kind: str) -> int:
        """Return the descriptor of one of its connections."""
        [number] = [n for n, (_, of) in self.cycle._fd_to_chan.items() if of == kind]
        return number

    def hears(self, word: str) -> bool:
        """Say this to all, and whether it is heard in five seconds."""
        with current_app.connection_for_write() as other:
            other.Producer().publish(word, exchange=self.said, declare=[self.said])
        until = time.monotonic() + 5
        while word not in self.heard and time.monotonic() < until:
            self.turn()
        return word in self.heard


@pytest.fixture
def listening() -> Iterator[Listening]:
    with current_app.connection_for_read() as connection:
        yield Listening(connection)


@pytest.mark.parametrize("order", [("BRPOP", "LISTEN"), ("LISTEN", "BRPOP")])
def test_connections_that_come_back_are_read_by_their_own_descriptors(
    broker: Redis, listening: Listening, order: Sequence[str]
) -> None:
    """Each may get the number of the other, and a read from the wrong one would never end."""
    for kind in ("normal", "pubsub"):
        for client in broker.client_list(_type=kind):
            if client["cmd"] in ("brpop", "psubscribe"):
                broker.client_kill_filter(_id=client["id"])
    numbers = [listening.number(kind) for kind in order]
    lost = dict(listening.cycle.poller.poll(1))
    assert sorted(lost) == sorted(numbers)
    listening.handle((number, lost[number]) for number in numbers)
    until = time.monotonic() + 5
    while not broker.pubsub_numpat() and time.monotonic() < until:
        listening.turn()
    assert listening.hears("hello")


@pytest.mark.parametrize("kind", ["BRPOP", "LISTEN"])
def test_a_reply_that_is_not_there_is_not_waited_for(listening: Listening, kind: str) -> None:
    """An event may tell of what has been read since; the loop would stand still meanwhile."""
    began_at = time.monotonic()
    event = [(listening.number(kind), READ)]
    read = Thread(target=listening.handle, args=[event], daemon=True)
    read.start()
    read.join(timeout=5)
    assert time.monotonic() - began_at < 4
    assert listening.hears("hello")


def test_a_message_that_comes_in_parts_is_heard(broker: Redis, listening: Listening) -> None:
    """Its rest is waited for, and the connection stays open."""
    [before] = broker.client_list(_type="pubsub")
    assert all(listening.hears(f"{n}" * 3_000_000) for n in range(3))
    [after] = broker.client_list(_type="pubsub")
    assert after["id"] == before["id"]
