"""A hand in Redis: one wrong thing at a time, in any key or on any channel, ours or Kombu's."""

from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any, Final

from redis import Redis
from redis.exceptions import ResponseError

ASIDE: Final = (b":quarantine", b":wrong:")
"""What was put aside for a person: nobody reads it."""
KOMBU: Final = {
    b"unacked": "hash",
    b"unacked_index": "zset",
    b"unacked_mutex": "string",
    b"_kombu.binding.system": "set",
    b"_kombu.binding.jobs": "set",
    b"_kombu.binding.celery.pidbox": "set",
    b"_kombu.binding.celeryev": "set",
    b"system": "list",
    b"system\x06\x163": "list",
}
"""Keys that may not be there, and of what type they would be."""
CHANNELS: Final = (
    b"/%d.celery.pidbox",
    b"/%d.celeryev/worker.heartbeat",
    b"/%d.celeryev/task.sent",
)
JUNK: Final = (
    *(b"", b"junk", b"\xff\x00", b"-1", b"0", b"1", b"7", b"1e400", b"inf", b"nan", b"9e15"),
    *(b"[]", b"{}", b"null", b"true", b'"x"', b"[1,2,3]", b"[[],[],[]]", b"[" * 100_000),
    *(b'{"properties": 1}', b'{"headers": [], "properties": {}, "body": 1}', b"\xc0", b"\x91\x01"),
    # As MessagePack: an infinity and no number; sixteen ones, as an owner's account has.
    *(b"\xcb\x7f\xf0\0\0\0\0\0\0", b"\xcb\x7f\xf8\0\0\0\0\0\0", b"\x01" * 16, b"\xff" * 16),
)
SCORES: Final = (float("inf"), float("-inf"), 1e300, -1e300, -1.0, 0.0, 9e15)
KINDS: Final = ("string", "hash", "list", "zset", "set")


class Hand:
    """Does one wrong thing after the other; `done` counts them by kind."""

    def __init__(self, client: Redis, chance: Random) -> None:
        self._client: Any = client
        self._chance = chance
        self._database = client.connection_pool.connection_kwargs.get("db") or 0
        self.done: Counter[str] = Counter()

    def spoil(self) -> str:
        """Do one wrong thing; return a description of it."""
        kind = self._chance.choice(["type", "delete", "value", "value", "value", "value", "say"])
        self.done[kind] += 1
        if kind == "say":
            return self._say()
        key, type_ = self._key()
        # A worker may change the key first: then nothing was done.
        with suppress(ResponseError):
            if kind == "delete":
                self._client.delete(key)
            elif kind == "type":
                self.give_another_type(key, type_)
            else:
                self._change(key, type_)
        return f"{kind} {key!r}"

    def give_another_type(self, key: bytes, kind: str) -> None:
        """Put a value of another type than this into a key."""
        with self._client.pipeline() as pipe:
            pipe.delete(key)
            self._put(pipe, key, self._chance.choice([other for other in KINDS if other != kind]))
            pipe.execute()

    def _say(self) -> str:
        heard = [*self._client.pubsub_channels(), *(name % self._database for name in CHANNELS)]
        channel = self._chance.choice(heard)
        said = self._chance.choice(JUNK)
        self._client.publish(channel, said)
        return f"say {said[:30]!r} on {channel!r}"

    def _key(self) -> tuple[bytes, str]:
        keys = dict.fromkeys(self._client.scan_iter(count=1000), "")
        found = sorted(key for key in {**KOMBU, **keys} if not any(each in key for each in ASIDE))
        key = self._chance.choice(found)
        kind = self._client.type(key).decode()
        return key, kind if kind != "none" else KOMBU.get(key, "string")

    def _put(self, client: Any, key: bytes, kind: str) -> None:
        value = self._chance.choice(JUNK)
        match kind:
            case "string":
                client.set(key, value)
            case "hash":
                client.hset(key, value, self._chance.choice(JUNK))
            case "list":
                client.rpush(key, value)
            case "zset":
                client.zadd(key, {value: self._chance.choice(SCORES)})
            case "set":
                client.sadd(key, value)

    def _change(self, key: bytes, kind: str) -> None:
        """Give one element of a key another value, or remove it, or add one."""
        chance, client = self._chance, self._client
        match kind:
            case "hash" if fields := client.hkeys(key):
                field = chance.choice(fields)
                value = client.hget(key, field) or b""
                if chance.random() < 0.15:
                    client.hdel(key, field)
                else:
                    client.hset(key, field, self._other(value))
            case "zset" if members := client.zrange(key, 0, 999):
                member = chance.choice(members)
                if chance.random() < 0.15:
                    client.zrem(key, member)
                else:
                    client.zadd(key, {member: chance.choice(SCORES)})
            case "list" if size := client.llen(key):
                client.lset(key, chance.randrange(size), chance.choice(JUNK))
            case "set" if members := client.smembers(key):
                client.srem(key, chance.choice(sorted(members)))
            case _:
                self._put(client, key, kind)

    def _other(self, value: bytes) -> bytes:
        chance = self._chance
        if not value or chance.random() < 0.5:
            return chance.choice(JUNK)
        changed = bytearray(value)
        if chance.random() < 0.3:
            return bytes(changed[: chance.randrange(len(changed))])
        changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed)
