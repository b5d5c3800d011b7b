"""fleet/transport/transport.py: connections in the pools of a process that forks."""

import os
from collections.abc import Iterator
from contextlib import suppress

import billiard
import pytest
import redis
from celery import current_app
from kombu import Connection, Consumer, Exchange, Queue

from tests.waiting import wait_for

FAIR, STOCK = "jobs", "tests.forked"
SECONDS = 10


@pytest.fixture(params=[FAIR, STOCK])
def queue(request: pytest.FixtureRequest) -> Queue:
    name = request.param
    return current_app.amqp.queues[name] if name == FAIR else Queue(name, Exchange(name), name)


@pytest.fixture
def waiting(broker: redis.Redis, queue: Queue) -> Iterator[tuple[Connection, list[str]]]:
    """A connection of a pool whose consumer waits, and the names it has received."""
    assert broker.ping()
    received: list[str] = []

    def receive(message: object) -> None:
        received.append(message.headers["id"])  # type: ignore[attr-defined]
        message.ack()  # type: ignore[attr-defined]

    pool = current_app.connection_for_read().Pool(1)
    with (
        pool.acquire(block=True) as connection,
        Consumer(connection.default_channel, [queue], on_message=receive),
    ):
        _look(connection)
        assert connection.default_channel._in_poll
        yield connection, received
    pool.force_close_all()


def _look(connection: Connection) -> None:
    with suppress(TimeoutError):
        connection.drain_events(timeout=0.2)


def test_a_forked_process_begins_though_a_pooled_connection_waits(
    waiting: tuple[Connection, list[str]], queue: Queue
) -> None:
    """It reads no reply that the first process waits for; that one goes on as before."""
    connection, received = waiting
    # Exit functions would end other processes of the first one.
    child = billiard.Process(target=os._exit, args=(0,))
    child.start()
    child.join(SECONDS)
    has_begun = child.exitcode == 0
    child.terminate()
    child.join()
    assert has_begun
    current_app.send_task("tests.add", (1,), queue=queue, task_id="a")

    def has_come() -> bool:
        _look(connection)
        return received == ["a"]

    wait_for(has_come, seconds=SECONDS)
