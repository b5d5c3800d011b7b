"""fleet/transport/adoption.py: foreign messages in a queue's lists are adopted or quarantined."""

from typing import Any

import redis
from celery import current_app

from fleet.keys import queue_key
from fleet.transport import scripts
from fleet.transport.adoption import adopt
from tests.jobs.scenes import known

QUEUE = "jobs"
MINUTE_US = 60_000_000


def stock_message(broker: redis.Redis, task_id: str) -> bytes:
    """Return a message as a stock client pushes it."""
    current_app.send_task("tests.add", (1, 2), queue="stock", message_id=task_id)
    raw = broker.lpop("stock")
    assert isinstance(raw, bytes)
    return raw


def has_foreign(broker: redis.Redis) -> bool:
    """Say whether an empty take reports foreign messages."""
    _number, _sleep, foreign, *_ = scripts.run(broker, QUEUE, "take", "w1", MINUTE_US, 0, 0, 0, 1)
    return bool(foreign)


def aside(broker: redis.Redis) -> int:
    return int(broker.llen(queue_key(QUEUE, "quarantine")))


def test_a_stock_message_is_taken_over_where_it_stands(broker: redis.Redis, channel: Any) -> None:
    """Before the queue's own placeholders, which stay."""
    current_app.send_task("tests.add", (1, 2), queue=QUEUE, message_id="ours")
    broker.lpush(QUEUE, stock_message(broker, "theirs"))
    assert has_foreign(broker)
    adopt(channel, QUEUE)
    assert (known(), has_foreign(broker)) == (["once:ours", "once:theirs"], False)
    assert (broker.llen(QUEUE), aside(broker)) == (2, 0)


def test_an_empty_string_hides_nobody(broker: redis.Redis, channel: Any) -> None:
    """It looks like a placeholder: it is quarantined, and the message behind it is adopted."""
    current_app.send_task("tests.add", (1, 2), queue=QUEUE, message_id="ours")
    broker.lpush(QUEUE, stock_message(broker, "theirs"), "", "")
    assert has_foreign(broker)
    adopt(channel, QUEUE)
    assert (known(), has_foreign(broker)) == (["once:ours", "once:theirs"], False)
    assert (broker.lrange(QUEUE, 0, -1), aside(broker)) == ([b"", b""], 2)
