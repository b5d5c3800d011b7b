"""Kombu on a fair queue without a worker: acked messages are gone, others come again."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import current_app
from kombu import Connection, Exchange, Queue

from fleet.keys import queue_key
from tests.jobs.scenes import known

QUEUE = "jobs"


@pytest.fixture
def connection(broker: redis.Redis) -> Iterator[Connection]:
    """A connection to an empty broker, of a process without a worker."""
    assert broker.ping()
    with current_app.connection_for_read() as connection:
        yield connection


def publish(*names: str) -> None:
    for name in names:
        current_app.send_task("tests.add", (name,), queue=QUEUE, message_id=name)


def held(broker: redis.Redis) -> int:
    """Return how many messages are leased."""
    return sum(broker.hlen(key) for key in broker.keys(queue_key(QUEUE, "held", "*")))


def test_an_acknowledged_message_of_a_simple_queue_is_gone(
    connection: Connection, broker: redis.Redis
) -> None:
    """Other messages that the queue had fetched are given back when the connection closes."""
    publish("a", "b", "c")
    queue = connection.SimpleQueue(QUEUE)
    queue.get(timeout=20).ack()
    assert known() == ["once:b", "once:c"]
    queue.close()
    connection.release()
    assert (known(), held(broker), broker.llen(QUEUE)) == (["once:b", "once:c"], 0, 2)


@pytest.mark.parametrize(("is_acked", "left"), [(True, []), (False, ["once:a"])])
def test_a_message_that_was_fetched_alone(
    connection: Connection, broker: redis.Redis, is_acked: bool, left: list[str]
) -> None:
    """`basic_get`, and the channel closes: acknowledged it is gone, else it comes again."""
    publish("a")
    channel = connection.channel()
    message = channel.basic_get(QUEUE)
    if is_acked:
        message.ack()
    channel.close()
    assert (known(), held(broker), broker.llen(QUEUE)) == (left, 0, len(left))


def test_what_is_fetched_without_acknowledgement_is_gone(
    connection: Connection, broker: redis.Redis
) -> None:
    """By `basic_get` and by a consumer: with no_ack, delivery is enough."""
    publish("a", "b")
    channel = connection.channel()
    assert channel.basic_get(QUEUE, no_ack=True)
    assert known() == ["once:b"]
    with connection.SimpleBuffer(QUEUE) as buffer:
        assert buffer.get(timeout=20)
    channel.close()
    assert (known(), held(broker)) == ([], 0)


def test_a_rejected_message_comes_again_and_says_so(connection: Connection) -> None:
    """Behind the others, and with Kombu's flag."""
    publish("a", "b")
    with connection.SimpleQueue(QUEUE) as queue:
        first = queue.get(timeout=20)
        assert not first.delivery_info.get("redelivered")
        first.requeue()
    connection.release()
    with connection.SimpleQueue(QUEUE) as queue:
        found = [queue.get(timeout=20) for _ in "ab"]
        flags: list[Any] = [
            (message.properties["message_id"], message.headers.get("redelivered"))
            for message in found
        ]
        # "b" was fetched beside it, and given back when the connection closed.
        assert flags == [("b", True), ("a", True)]


def test_a_deleted_queue_is_empty(connection: Connection, broker: redis.Redis) -> None:
    """Leased messages go, too, and a late acknowledgement of one is ignored."""
    publish("a", "b")
    channel = connection.channel()
    message = channel.basic_get(QUEUE)
    with current_app.connection_for_read() as other:
        queue = Queue(QUEUE, Exchange(QUEUE), QUEUE)(other)
        queue.declare()
        queue.delete()
    assert (known(), held(broker), broker.llen(QUEUE)) == ([], 0, 0)
    assert broker.hlen(queue_key(QUEUE, "body")) == 0
    message.ack()
    publish("c")
    assert known() == ["once:c"]
