"""fleet/transport/poller.py: a lost connection is opened again in place, where that can help."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

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
    """The attributes of a channel that a poller uses."""

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
    """It would wait inside its call; the caller decides what to do."""
    assert not polling("redis://a", is_in_loop=False).outlives(LOST)


def test_where_celery_knows_another_broker_it_goes_there_at_once(clock: Clock) -> None:
    """`broker_url` with several addresses: they stand by for just this."""
    assert not polling("redis://a", "redis://b").outlives(LOST)


def test_what_answers_next_may_be_another_server(clock: Clock) -> None:
    """It is given what is held here before it hands out more."""
    one = polling("redis://a")
    [channel] = one._channels
    channel.leases._met = {("jobs", channel.holder), ("jobs", "another")}
    assert one.outlives(LOST)
    assert channel.leases._met == {("jobs", "another")}
