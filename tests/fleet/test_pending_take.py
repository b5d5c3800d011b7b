"""A take whose reply has not come yet: nothing that it brings is lost, or had twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from queue import Empty
from typing import Any

import pytest
import redis
from celery import current_app
from kombu.asynchronous import Hub, set_event_loop

from fleet.keys import queue_key
from fleet.transport import scripts
from fleet.transport.leases import NOT_NOW, Leases, Room
from fleet.transport.pending_take import RoundTrip
from tests.fleet.test_leases import MINUTE_US, QUEUE, counters, ids, put, taken
from tests.jobs.scenes import known
from tests.waiting import wait_for


@pytest.fixture
def leases(broker: redis.Redis) -> Leases:
    """The leases of one worker, which has met the queue."""
    leases = Leases()
    leases.take(broker, QUEUE, Room(0, 0), channel="it", lease_us=MINUTE_US, most=1)
    return leases


@pytest.fixture
def connection(broker: redis.Redis) -> Iterator[Any]:
    """A connection on which nothing but takes is sent."""
    connection = broker.connection_pool.get_connection()
    yield connection
    connection.disconnect()
    broker.connection_pool.release(connection)


def begin(leases: Leases, broker: redis.Redis, connection: Any, *, channel: str = "it") -> Any:
    """Send a take for ten slots."""
    how = {"channel": channel, "lease_us": MINUTE_US, "most": 100}
    return leases.begin_take(broker, QUEUE, Room(10, 0), connection=connection, **how)


def held(broker: redis.Redis, leases: Leases) -> list[str]:
    """Return what the queue takes this worker to hold."""
    return sorted(one.decode() for one in broker.hkeys(queue_key(QUEUE, "held", leases.worker)))


def test_a_take_brings_messages_when_its_reply_is_read(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """Until then this process holds nothing, and says nothing that came before once more."""
    put(broker, "a", "b")
    [first, _] = taken(leases, broker)
    leases.finish(first, 0.01)
    leases.ack(first)
    put(broker, "c")
    pending = begin(leases, broker, connection)
    assert not leases.has_unsaid
    found = leases.end_take(broker, pending)
    assert ids([tag for tag, _raw in found.messages]) == ["c"]
    assert (known(), counters(broker)["finished"]) == (["b", "c"], 1)
    assert leases.round_trip_us > 0


def test_a_queue_is_asked_one_thing_at_a_time(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """A second channel of the process asks later: the queue would take the first reply for lost."""
    put(broker, "a")
    pending = begin(leases, broker, connection)
    assert begin(leases, broker, connection, channel="other") is None
    assert taken(leases, broker, channel="other") == []
    assert len(leases.end_take(broker, pending).messages) == 1
    put(broker, "b")
    assert ids(taken(leases, broker, channel="other")) == ["b"]


def test_what_a_lost_connection_took_along_comes_back(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """The messages with the next take, and what was said with the lost one is said again."""
    put(broker, "a", "b")
    [first, _] = taken(leases, broker)
    leases.finish(first, 0.01)
    leases.ack(first)
    put(broker, "c")
    pending = begin(leases, broker, connection)
    connection.disconnect()
    with pytest.raises(redis.ConnectionError):
        leases.end_take(broker, pending)
    assert leases.has_unsaid
    assert "c" in ids(taken(leases, broker))
    assert (known(), counters(broker)["finished"]) == (["b", "c"], 1)


def test_a_dropped_take_brings_nothing(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """A new channel has named what is held here, and this was not among it: it is the queue's."""
    put(broker, "a")
    pending = begin(leases, broker, connection)
    # Its script has run, and the reply is on its way.
    connection.can_read(timeout=5)
    leases.give_back_unstarted("it")
    leases.take(broker, QUEUE, Room(0, 0), channel="new", lease_us=MINUTE_US, most=1)
    assert leases.end_take(broker, pending) == NOT_NOW
    assert held(broker, leases) == []
    assert ids(taken(leases, broker, channel="new")) == ["a"]


def test_a_script_that_the_server_forgot_is_sent_again(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """A restarted server knows none: the take runs all the same."""
    put(broker, "a")
    broker.script_flush()
    found = leases.end_take(broker, begin(leases, broker, connection))
    assert ids([tag for tag, _raw in found.messages]) == ["a"]


def test_a_key_of_the_wrong_type_is_mended(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """The take that met it brings nothing, and the next one what there is."""
    broker.set(queue_key(QUEUE, "eligible"), "junk")
    assert leases.end_take(broker, begin(leases, broker, connection)).messages == []
    assert counters(broker)["mended"] == 1
    put(broker, "a")
    found = wait_for(lambda: leases.end_take(broker, begin(leases, broker, connection)).messages)
    assert ids([tag for tag, _raw in found]) == ["a"]


def test_a_reply_of_an_epoch_that_is_over_is_held(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """Redis was emptied on the way: the queue is told of the messages, and keeps them for us."""
    current_app.send_task("tests.add", queue=QUEUE, message_id="a")
    pending = begin(leases, broker, connection)
    connection.can_read(timeout=5)
    broker.flushall()
    leases.renew(broker)  # beside the loop: it meets the new epoch first
    found = leases.end_take(broker, pending)
    [(tag, _raw)] = found.messages
    assert held(broker, leases) == ["once:a"]
    leases.finish(tag, 0.01)
    leases.ack(tag)
    leases.say(broker)
    assert known() == []


def test_a_server_that_does_not_answer_is_an_error(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """After the time for which a call would wait, and never where none is set."""
    pending = begin(leases, broker, connection)
    assert not pending.is_overdue
    connection.socket_timeout = 5
    pending.sent_at -= 6
    assert pending.is_overdue
    connection.socket_timeout = None
    assert not pending.is_overdue
    leases.end_take(broker, pending)


def test_the_round_trip_is_the_least_of_the_last_takes() -> None:
    """The others also waited for this process; what is long past does not count."""
    trip = RoundTrip()
    for seconds in (0.3, 0.001, 0.4):
        trip.note(seconds)
    assert trip.us == 1_000
    for _ in range(8):
        trip.note(0.3)
    assert trip.us == 300_000
    for _ in range(8):
        trip.note(30)
    assert trip.us == 1_000_000


def test_a_channel_that_closes_gives_back_what_is_on_its_way(broker: redis.Redis) -> None:
    """It waits for the reply, for a second at most: others need not wait for the lease."""
    hub = Hub()
    set_event_loop(hub)
    try:
        for name in "ab":
            current_app.send_task("tests.add", queue=QUEUE, message_id=name)
        with current_app.connection_for_read() as connected:
            connected.transport.register_with_event_loop(connected.transport, hub)
            channel = connected.channel()
            channel.basic_consume(QUEUE, no_ack=False, callback=print, consumer_tag="1")
            channel.qos.prefetch_count = 2
            cycle = connected.transport.cycle
            while not held(broker, channel.leases):
                cycle._register_BRPOP(channel)
                channel._in_poll.can_read(timeout=5)
                if not held(broker, channel.leases):
                    with suppress(Empty):
                        channel._brpop_read()  # the queue was not told yet
            assert channel.has_pending_take
            assert held(broker, channel.leases) == ["once:a", "once:b"]
            channel.close()
        assert held(broker, channel.leases) == []
        assert scripts.run(broker, QUEUE, "find", "once:a")[0] == b"ready"
    finally:
        set_event_loop(None)
