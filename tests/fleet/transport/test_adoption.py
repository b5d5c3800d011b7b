"""fleet/transport/adoption.py: foreign messages in a queue's lists are adopted or quarantined."""

from typing import Any

import redis

from fleet.keys import queue_key
from fleet.transport import scripts
from fleet.transport.adoption import adopt
from tests.fleet.hinting import QUEUE, call, pushed_by_stock
from tests.jobs.scenes import known

MINUTE_US = 60_000_000


def has_foreign(broker: redis.Redis) -> bool:
    """Say whether an empty take reports foreign messages."""
    _number, _sleep, foreign, *_ = scripts.run(broker, QUEUE, "take", "w1", MINUTE_US, 0, 0, 0, 1)
    return bool(foreign)


def test_an_empty_string_hides_nobody(broker: redis.Redis, channel: Any) -> None:
    """It looks like a placeholder: it is quarantined, and the stock message behind it is adopted.

    The queue's own placeholders stay.
    """
    call(message_id="ours")
    pushed_by_stock(broker, message_id="theirs")
    broker.lpush(QUEUE, "", "")
    assert has_foreign(broker)
    adopt(channel, QUEUE)
    assert (known(), has_foreign(broker)) == (["once:ours", "once:theirs"], False)
    assert broker.lrange(QUEUE, 0, -1) == [b"", b""]
    assert broker.llen(queue_key(QUEUE, "quarantine")) == 2
