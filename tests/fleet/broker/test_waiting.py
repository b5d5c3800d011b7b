"""fleet/broker/waiting.py: what waits in a queue is listed, and nothing is changed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from celery import Celery, current_app
from celery.exceptions import ImproperlyConfigured

from fleet import Broker, WaitingMessage, waiting_messages
from tests.fleet.hinting import QUEUE as FAIR
from tests.fleet.hinting import call, hint, pushed_by_stock

PLAIN = "stock"
both = pytest.mark.parametrize("queue", [FAIR, PLAIN])


def waiting(queue: str) -> dict[str, WaitingMessage]:
    """Return what waits in a queue, by task id."""
    return {message.id: message for message in waiting_messages(current_app, queue)}


@both
def test_calls_of_every_priority_are_listed(client: redis.Redis, queue: str) -> None:
    """With task, headers and state; they still wait afterwards."""
    ids = {call(queue, priority=priority) for priority in range(10)}
    call("elsewhere")
    for _ in range(2):
        found = waiting(queue)
        assert found.keys() == ids
        assert {(message.task, message.state) for message in found.values()} == {
            ("tests.add", "ready")
        }
        assert all(message.headers["argsrepr"] == "(1, 2)" for message in found.values())


@both
def test_a_long_queue_is_listed_whole(client: redis.Redis, queue: str) -> None:
    """Over several pages, of which a caller may read the first alone."""
    with current_app.pool.acquire(block=True) as connection, connection.Producer() as producer:
        ids = {call(queue, producer=producer) for _ in range(603)}
    assert waiting(queue).keys() == ids
    assert next(waiting_messages(current_app, queue)).id in ids


def test_the_state_says_why_a_message_waits(client: redis.Redis) -> None:
    """Those that a worker has are not listed."""
    facts: dict[str, Any] = {"headers": {"fairshift": {"owner": "acme", "lock": "door"}}}
    taken = call(FAIR, **facts)
    with current_app.connection_for_read() as connection:
        assert connection.default_channel.basic_get(FAIR).headers["id"] == taken
        states = {
            call(FAIR): "ready",
            call(FAIR, **facts): "parked",
            call(FAIR, eta=datetime.now(UTC) + timedelta(hours=1)): "delayed",
        }
        assert {one.id: one.state for one in waiting(FAIR).values()} == states


def test_a_durable_run_has_its_id_and_no_arguments(broker: Broker) -> None:
    """As its row has them."""
    sent = hint()
    broker.publish([sent], timeout=5)
    [message] = waiting(FAIR).values()
    assert (message.id, message.task) == (sent.run_id, sent.task)
    assert message.headers["fairshift"]["owner"] == sent.owner


def test_what_a_stock_client_has_pushed_is_listed(client: redis.Redis) -> None:
    """Before a worker has adopted it, beside the messages of the queue."""
    sent = {call(), pushed_by_stock(client)}
    assert waiting(FAIR).keys() == sent


@both
def test_other_bytes_are_left_out(client: redis.Redis, queue: str) -> None:
    """They hide no message behind them."""
    one = call(queue)
    client.lpush(queue, b"no message", b'{"headers": {}, "properties": {"delivery_info": {}}}')
    assert waiting(queue).keys() == {one}


def test_another_broker_is_an_error() -> None:
    """Named, with its transport."""
    with (
        Celery("elsewhere", broker="memory://", set_as_current=False) as app,
        pytest.raises(ImproperlyConfigured, match="memory"),
    ):
        next(waiting_messages(app, PLAIN))
