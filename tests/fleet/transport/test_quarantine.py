"""fleet/transport/quarantine.py: messages that end their process are put aside in the end."""

from typing import Any

import redis
from celery import current_app
from kombu import Connection

from fleet.keys import queue_key
from fleet.transport.quarantine import STRIKES

QUEUE = "jobs"


def received(connection: Connection) -> Any:
    """Return the one message of the queue."""
    message = connection.default_channel.basic_get(QUEUE)
    assert message is not None, "a message waits"
    return message


def end_its_process(connection: Connection, message: Any) -> None:
    """Have a process die with this message, as the pool reports it and Celery answers."""
    channel = connection.default_channel
    channel.leases.lose(message.delivery_tag)
    message.reject(requeue=True)
    channel.settle()


def test_a_message_that_ends_its_processes_is_put_aside(broker: redis.Redis) -> None:
    """Each time it waits longer; at the last it is for a person to look at."""
    current_app.send_task("tests.add", (1, 2), queue=QUEUE)
    with current_app.connection_for_read() as connection:
        for strikes in (0, STRIKES - 2):
            message = received(connection)
            key = message.delivery_tag.partition("#")[0]
            broker.hset(queue_key(QUEUE, "strikes"), key, strikes)
            end_its_process(connection, message)
            assert broker.zcard(queue_key(QUEUE, "delayed")) == 1
            # Its time has come.
            broker.zadd(queue_key(QUEUE, "delayed"), {key: 0})
        end_its_process(connection, received(connection))
        assert broker.zcard(queue_key(QUEUE, "delayed")) == 0
    assert broker.llen(queue_key(QUEUE, "quarantine")) == 1
    assert broker.hlen(queue_key(QUEUE, "meta")) == 0
