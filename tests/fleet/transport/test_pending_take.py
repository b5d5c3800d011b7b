"""A take whose reply has not come yet: its messages are neither lost nor taken twice."""

import time
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty
from typing import Any

import pytest
import redis
from celery import Celery, current_app
from django.conf import settings
from kombu.asynchronous import Hub, set_event_loop

from fleet.keys import queue_key
from fleet.transport import epochs, scripts
from fleet.transport.lease_taking import NOT_NOW, Room
from fleet.transport.leases import Leases
from tests.fleet.transport.test_leases import MINUTE_US, QUEUE, counters, end, ids, put, taken
from tests.jobs.scenes import known
from tests.waiting import wait_for

OTHER = "other"


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
    """Return the messages that the queue takes this worker to hold."""
    return sorted(one.decode() for one in broker.hkeys(queue_key(QUEUE, "held", leases.worker)))


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
    """The messages with the next take; operations sent with the lost one are sent again."""
    put(broker, "a", "b")
    [first, _] = taken(leases, broker)
    end(leases, first)
    put(broker, "c")
    pending = begin(leases, broker, connection)
    connection.disconnect()
    with pytest.raises(redis.ConnectionError):
        leases.end_take(broker, pending)
    assert leases.has_pending
    assert "c" in ids(taken(leases, broker))
    assert (known(), counters(broker)["finished"]) == (["b", "c"], 1)


def test_a_dropped_take_brings_nothing(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """A new channel has declared what is held here, without this: it belongs to the queue."""
    put(broker, "a")
    pending = begin(leases, broker, connection)
    # Its script has run, and the reply is on its way.
    connection.can_read(timeout=5)
    leases.give_back_unstarted("it")
    leases.take(broker, QUEUE, Room(0, 0), channel="new", lease_us=MINUTE_US, most=1)
    assert leases.end_take(broker, pending) == NOT_NOW
    assert held(broker, leases) == []
    assert ids(taken(leases, broker, channel="new")) == ["a"]


def test_the_number_of_an_epoch_before_is_not_taken_over(
    broker: redis.Redis, leases: Leases, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis was emptied before the take, and another thread met the new epoch: leases stay.

    With the old number the queue would take the last reply for lost, and give all away.
    """
    monkeypatch.setattr(epochs, "_primers", [lambda: None])  # an application primes it later
    for name in "ab":
        current_app.send_task("tests.add", queue=QUEUE, message_id=name)
    [running] = taken(leases, broker, 1, channel="it")
    leases.start(running)
    for _ in range(3):
        taken(leases, broker, 0, channel="it")
    broker.flushall()
    pending = begin(leases, broker, connection)
    connection.can_read(timeout=5)
    leases.renew(broker)
    assert leases.end_take(broker, pending) == NOT_NOW
    other = Leases()
    for _ in range(30):
        assert leases.end_take(broker, begin(leases, broker, connection)).messages == []
        assert ids(taken(other, broker)) == []
        time.sleep(0.1)  # past the second in which others might declare what they hold
    assert held(broker, leases) == ["once:a"]


def test_a_reply_of_an_epoch_that_is_over_is_held(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """Redis was emptied meanwhile: the messages are declared, and stay leased to this worker."""
    current_app.send_task("tests.add", queue=QUEUE, message_id="a")
    pending = begin(leases, broker, connection)
    connection.can_read(timeout=5)
    broker.flushall()
    leases.renew(broker)  # beside the loop: it meets the new epoch first
    found = leases.end_take(broker, pending)
    [lease] = found.messages
    assert held(broker, leases) == ["once:a"]
    end(leases, lease.tag)
    leases.flush(broker)
    assert known() == []


def test_a_server_that_does_not_answer_is_an_error(
    broker: redis.Redis, leases: Leases, connection: Any
) -> None:
    """After a call's timeout; not without a timeout, or when the reply is here."""
    broker.client_pause(500)
    pending = begin(leases, broker, connection)
    assert not pending.is_overdue
    connection.socket_timeout = 5
    pending.sent_at -= 6
    assert pending.is_overdue
    connection.socket_timeout = None
    assert not pending.is_overdue
    connection.socket_timeout = 5
    connection.can_read(timeout=5)
    wait_for(lambda: not pending.is_overdue, what="the reply")
    leases.end_take(broker, pending)


@pytest.fixture
def channel(broker: redis.Redis) -> Iterator[Any]:
    """A channel in an event loop, with two slots, on two fair queues that have been primed."""
    options = {"fair_queues": [QUEUE, OTHER], "lease_seconds": 30}
    hub = Hub()
    set_event_loop(hub)
    try:
        with (
            Celery("two", broker=settings.REDIS_URL, set_as_current=False) as app,
            app.connection_for_read(transport_options=options) as connected,
        ):
            connected.transport.register_with_event_loop(connected.transport, hub)
            channel = connected.channel()
            for queue in (QUEUE, OTHER):
                with suppress(Empty):
                    channel._get(queue)
                channel.basic_consume(
                    queue, no_ack=False, callback=print, consumer_tag=f"of {queue}"
                )
            channel.qos.prefetch_count = 2
            yield channel
    finally:
        set_event_loop(None)


def turn(channel: Any) -> None:
    """Turn the loop once for a channel, and wait for an answer."""
    cycle = channel.connection.cycle
    if channel.qos.can_consume():
        cycle._register_BRPOP(channel)
    if channel._in_poll and channel._in_poll.can_read(timeout=1):
        with suppress(Empty):
            channel._brpop_read()


def test_a_queue_that_was_empty_is_asked_again_beside_a_busy_one(
    broker: redis.Redis, channel: Any
) -> None:
    """Whenever there is room: a backlog of one queue does not delay another queue."""
    put(broker, *(f"other-{number}" for number in range(20)), queue=OTHER)
    wait_for(lambda: turn(channel) or len(channel._arrived) == 2)
    put(broker, "mine")
    seen: list[str] = []
    for _ in range(30):
        while channel._arrived:
            tag = channel._arrived.popleft().tag
            seen.append(tag.partition("#")[0])
            channel.leases.finish(tag, 0.2)
            channel.leases.ack(tag)
        if "mine" in seen:
            break
        turn(channel)
    assert "mine" in seen
    assert len(seen) <= 8


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_channel_gives_back_what_is_on_its_way(
    broker: redis.Redis, channel: Any, way: str
) -> None:
    """A stopping worker cancels its consumers and drains for minutes; others need not wait.

    A channel that closes waits for the reply, for a second at most.
    """
    channel.basic_cancel(f"of {OTHER}")
    put(broker, "a", "b")
    wait_for(lambda: channel.connection.cycle._register_BRPOP(channel) or channel.has_pending_take)
    channel._in_poll.can_read(timeout=5)
    assert held(broker, channel.leases) == ["a", "b"]
    if way == "cancel":
        channel.basic_cancel(f"of {QUEUE}")
        channel.settle()
    else:
        channel.close()
    assert not channel.has_pending_take
    assert held(broker, channel.leases) == []
    assert [scripts.run(broker, QUEUE, "find", name)[0] for name in "ab"] == [b"ready", b"ready"]
