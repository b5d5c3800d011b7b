"""Unusable values of the right type: the queue continues, whether an act meets them or not."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import current_app

from fleet.keys import QUEUE_KEYS, audited_key, mended_key, queue_key
from tests.fleet.hands import QUEUE, Scene, mended, publish

INFINITE = b"\xcb\x7f\xf0\0\0\0\0\0\0"
SIXTEEN_INFINITE = INFINITE * 16


@pytest.fixture
def scene(channel: Any) -> Scene:
    return Scene(channel)


def key(name: str, of: str = "") -> str:
    return queue_key(QUEUE, name, of)


def each_field(client: Any, name: str, value: bytes) -> None:
    """Give all fields of a hash a value."""
    [found, *_] = client.keys(key(name, "*")) if QUEUE_KEYS[name].one else [key(name)]
    for field in client.hkeys(found):
        client.hset(found, field, value)


UNREAD: dict[str, Callable[[Any, Scene], Any]] = {
    "accounts that are no pack": lambda c, _: each_field(c, "accounts", b"junk"),
    "accounts of too few numbers": lambda c, _: each_field(c, "accounts", b"\x01"),
    "accounts of infinite numbers": lambda c, _: each_field(c, "accounts", SIXTEEN_INFINITE),
    "messages that are no pack": lambda c, _: each_field(c, "meta", b"\xff\xff"),
    "messages without a place": lambda c, _: each_field(
        c, "meta", b"\xa1a\xa0\xa0\xa1t" + INFINITE
    ),
    "leases that are no pack": lambda c, _: each_field(c, "held", b"[]"),
    "a lease of an infinite number": lambda c, _: each_field(c, "held", INFINITE),
    "takes that are no pack": lambda c, s: [each_field(c, "takes", b""), s.take(s.idle, slots=0)],
    "an infinite virtual time": lambda c, _: c.hset(key("state"), "virtual", "inf"),
    "a lease number that is none": lambda c, _: c.hset(key("state"), "lease", "nan"),
    "a last order that is too great": lambda c, _: c.hset(key("state"), "sequence", "1e300"),
    "counters that are no numbers": lambda c, _: each_field(c, "counters", b"x"),
    "an infinite run time": lambda c, _: c.hset(key("expected"), "tests.add", "inf"),
    "a run time below 0": lambda c, _: c.hset(key("expected"), "tests.add", "-5"),
}


@pytest.mark.parametrize("what", UNREAD)
def test_an_act_that_meets_it_has_the_queue_begin_anew(scene: Scene, what: str) -> None:
    """Waiting messages run once, held ones stay held, and the fault was counted or forgotten."""
    UNREAD[what](scene.client, scene)
    publish("later")
    scene.end("a", "b", "later")
    assert scene.ended == Counter({"a", "b", "later"})
    scene.finish_held()
    scene.end("parked")
    # What a queue did not come upon until then costs nothing.
    assert mended(scene.client) or "counters" in what


def lose_line(client: Any, _scene: Scene) -> None:
    [line, *_] = client.keys(key("ready", "*"))
    client.delete(line)


def miscount(client: Any, _scene: Scene) -> None:
    """Set each owner's ready count, the sixth number, to 0."""
    for name, packed in client.hgetall(key("accounts")).items():
        client.hset(key("accounts"), name, packed[:5] + b"\0" + packed[6:])


UNNOTICED: dict[str, Callable[[Any, Scene], Any]] = {
    "a line that is gone": lose_line,
    "lines that are gone from their owner": lambda c, _: c.delete(key("submissions", "acme")),
    "an owner who has nothing ready": miscount,
    "nobody who may be chosen": lambda c, _: c.delete(key("eligible")),
    "a score past all others": lambda c, _: c.zadd(key("eligible"), {"acme": float("inf")}),
    "all placeholders gone": lambda c, _: c.hset(key("state"), "placeholders", "0"),
    "a parked line that is gone": lambda c, _: c.delete(*c.keys(key("parked", "*"))),
    "nobody who contends": lambda c, _: c.delete(*c.keys(key("contenders", "*"))),
    "an audit that rests for ever": lambda c, s: [c.set(audited_key(QUEUE), "1"), lose_line(c, s)],
    "a repair that is blocked for ever": lambda c, s: [
        c.set(mended_key(QUEUE), "1"),
        lose_line(c, s),
    ],
}


@pytest.mark.parametrize("what", UNNOTICED)
def test_the_audit_finds_what_no_act_would(scene: Scene, what: str) -> None:
    """Within some seconds all waiting messages have run, also those that no act would find."""
    scene.client.delete(audited_key(QUEUE))
    UNNOTICED[what](scene.client, scene)
    scene.end("a", "b")
    scene.finish_held()
    scene.end("parked")
    assert scene.ended == Counter({"a", "b", "parked"})
    assert mended(scene.client)


def test_the_audit_misses_what_was_to_wait(scene: Scene) -> None:
    """A message whose delay is gone stands nowhere: it comes when it is due."""
    facts = {"fairshift": {"owner": "acme"}}
    current_app.send_task("tests.add", message_id="slow", queue=QUEUE, countdown=1, headers=facts)
    scene.client.delete(key("delayed"))
    scene.end("a", "b", "slow")


def test_a_far_eta_is_no_wrong_value(scene: Scene) -> None:
    """A caller's ETA of another millennium waits, and the audit leaves the queue alone."""
    far = datetime(2999, 1, 1, tzinfo=UTC)
    current_app.send_task("tests.add", message_id="far", queue=QUEUE, eta=far)
    scene.client.delete(audited_key(QUEUE))
    scene.end("a", "b")
    scene.holder.renew(scene.client)
    assert (mended(scene.client), scene.client.zcard(key("delayed"))) == (0, 1)


def test_a_lease_under_another_number_comes_back(scene: Scene) -> None:
    """Its worker ends it under the number that it knows, and the queue knows of no such lease."""
    [(field, packed)] = scene.client.hgetall(key("held", scene.holder.worker)).items()
    scene.client.hset(key("held", scene.holder.worker), field, b"\x7f" + packed[1:])
    scene.finish_held()
    for _ in range(3):
        scene.holder.renew(scene.client)
    assert not scene.client.hgetall(key("held", scene.holder.worker))
    scene.end("parked")
