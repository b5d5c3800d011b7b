"""fleet/transport/stock.py: Kombu's own keys, with contents that Kombu did not write."""

from typing import Any

import redis

from fleet.keys import wrong_key
from fleet.transport.stock import put_aside_wrong


class Late:
    """A client that comes after another worker: what it has looked at is gone."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def type(self, key: str) -> Any:
        kind = self._client.type(key)
        put_aside_wrong(self._client, {key: "list"})
        return kind


def test_a_key_that_is_gone_meanwhile_is_wrong_no_more(broker: redis.Redis) -> None:
    """Two workers meet the same key: one puts it aside, and neither fails."""
    broker.set("one", "junk")
    assert put_aside_wrong(Late(broker), {"one": "list"}) == ["one"]  # type: ignore[arg-type]
    assert broker.get(wrong_key("kombu", "one")) == b"junk"
    assert not broker.exists("one")
