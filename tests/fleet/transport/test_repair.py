"""Keys of the wrong type: a fair queue puts them aside and continues with the rest."""

import json
from collections import Counter
from typing import Any

import pytest
import redis

from fleet.keys import QUEUE_KEYS, queue_key, wrong_key
from fleet.transport import scripts
from fleet.transport.adoption import adopt
from fleet.transport.leases import Leases
from fleet.transport.repair import quarantine_wrong_keys
from tests.fleet.hands import MINUTE_US, QUEUE, Scene, mended, publish
from tests.fleet.hinting import pushed_by_stock
from tests.jobs.scenes import known

PRIORITY = f"{QUEUE}\x06\x163"


@pytest.fixture
def scene(channel: Any) -> Scene:
    return Scene(channel)


def spoil(client: redis.Redis, key: str, kind: str) -> None:
    """Put a value that is not of this type into its key."""
    client.delete(key)
    match kind:
        case "hash":
            client.zadd(key, {"junk": 1})
        case "zset":
            client.set(key, "junk")
        case _:
            client.hset(key, "junk", "junk")


def key_of(client: redis.Redis, name: str) -> str:
    """Return a key of this name: one that the queue has, where there is one an owner or so."""
    if not QUEUE_KEYS[name].one:
        return queue_key(QUEUE, name)
    [key, *_] = client.keys(queue_key(QUEUE, name, "*"))
    return str(key.decode())


@pytest.mark.parametrize("name", [*QUEUE_KEYS, QUEUE, PRIORITY])
def test_the_queue_goes_on_past_a_key_of_the_wrong_type(scene: Scene, name: str) -> None:
    """It is put aside and counted; waiting messages run once, held ones too; the lock holds."""
    client = scene.client
    key, kind = (
        (key_of(client, name), QUEUE_KEYS[name].type) if name in QUEUE_KEYS else (name, "list")
    )
    spoil(client, key, kind)
    publish("later")
    waiting = {"later"} if name == "body" else {"a", "b", "later"}
    scene.end(*waiting)
    assert scene.ended == Counter(waiting)
    scene.finish_held()
    last = set() if name == "body" else {"parked"}
    scene.end(*last)
    scripts.run(client, QUEUE, "counters")  # reads what is seldom written
    assert scene.ended == Counter(waiting | last)
    assert (mended(client), known()) == (1, [])
    aside = wrong_key(QUEUE, key)
    assert client.type(aside) not in (b"none", kind.encode())
    assert client.ttl(aside) > 24 * 3600
    assert client.type(key) in (b"none", kind.encode())


def test_what_is_leased_stays_leased(scene: Scene) -> None:
    """Its end is charged, its cap counts; and it comes back when its worker is gone."""
    spoil(scene.client, queue_key(QUEUE, "meta"), "hash")
    assert quarantine_wrong_keys(scene.client, QUEUE)
    rows = scripts.run(scene.client, QUEUE, "owners", 0, 0, "acme")
    assert int(rows[0][6]) == 1, "one of its messages runs"
    gone, scene.holder = scene.holder, Leases()
    scene.client.zadd(queue_key(QUEUE, "workers"), {gone.worker: 0})
    scene.end("a", "b", "held", "parked")
    assert scene.ended == Counter(["a", "b", "held", "parked"])


def test_an_end_that_was_said_into_a_wrong_key_is_no_reason_to_run_again(scene: Scene) -> None:
    """Its worker sends it once more, and finds its lease as it was."""
    spoil(scene.client, queue_key(QUEUE, "meta"), "hash")
    scene.finish_held()
    scene.end("a", "b", "parked")
    assert (scene.ended["held"], known()) == (0, [])


@pytest.mark.parametrize("act", ["done", "ack"])
def test_an_end_that_failed_halfway_is_no_reason_to_run_again(
    broker: redis.Redis, act: str
) -> None:
    """Its lease is removed last: repair would republish a message with a body and no lease."""
    publish("a")
    [[held, lease, *_]] = scripts.run(broker, QUEUE, "take", "w1", MINUTE_US, 0, 1, 0, 10)[6:]
    spoil(broker, queue_key(QUEUE, "meta"), "hash")
    ran = [1_000] if act == "done" else []
    assert scripts.run(broker, QUEUE, act, "w1", held, lease, *ran) == 1
    assert (known(), mended(broker)) == ([], 1)


def test_a_take_that_failed_halfway_keeps_nothing(broker: redis.Redis) -> None:
    """Its leases go back, also when it was the worker's first: here the worker takes it again."""
    publish("a", "b")
    # A take reads the list when it has written its leases.
    spoil(broker, QUEUE, "list")
    given = scripts.run(broker, QUEUE, "take", "w1", MINUTE_US, 0, 10, 0, 10)[6:]
    assert [one[0] for one in given] == [b"once:a", b"once:b"]
    assert int(scripts.run(broker, QUEUE, "owners", 0, 0, "acme")[0][6]) == 2


def test_a_message_that_was_put_in_halfway_is_put_in_once(broker: redis.Redis) -> None:
    """Repair does not publish it: its publisher repeats the failed call."""
    spoil(broker, queue_key(QUEUE, "eligible"), "zset")
    publish("it")
    assert (known(), broker.lrange(QUEUE, 0, -1), mended(broker)) == (["once:it"], [b""], 1)


def test_what_was_held_again_halfway_is_held_once(scene: Scene) -> None:
    """A worker declares to an emptied queue what it holds, and meets a wrong key."""
    scene.client.flushdb()
    spoil(scene.client, queue_key(QUEUE, "accounts"), "hash")
    scene.holder.renew(scene.client)
    assert (known(), scene.client.lrange(QUEUE, 0, -1)) == (["once:held"], [])
    assert mended(scene.client) == 1


def test_a_stock_message_is_not_lost_between_two_lists(channel: Any) -> None:
    """An adoption that meets a wrong key leaves it in the list."""
    pushed_by_stock(channel.client, message_id="theirs")
    spoil(channel.client, queue_key(QUEUE, "eligible"), "zset")
    adopt(channel, QUEUE)
    assert (known(), channel.client.lrange(QUEUE, 0, -1)) == (["once:theirs"], [b""])
    assert mended(channel.client) == 1


def test_a_hint_is_left_to_its_row(broker: redis.Redis) -> None:
    """It is not published again as it stands: the sweep makes it anew, with its delay."""
    hint = {"headers": {"id": "it", "fairshift": {"run": "it", "token": 1}}}
    call = {"headers": {"id": "call", "run": "it", "fairshift": {"owner": "acme"}}}
    for message in (hint, call):
        group = (message["headers"]["id"], "acme", "", 5, 0, "", "", "tests.add")
        scripts.run(broker, QUEUE, "enqueue", *group, json.dumps(message))
    spoil(broker, queue_key(QUEUE, "state"), "hash")
    assert quarantine_wrong_keys(broker, QUEUE)
    assert broker.lrange(QUEUE, 0, -1) == [json.dumps(call).encode()]


WAKE = queue_key(QUEUE, "wake")


@pytest.mark.parametrize(
    ("spoilt", "repairs"),
    [
        (lambda client: spoil(client, WAKE, "list"), 1),
        (lambda client: client.lpush(WAKE, "junk", b"\xff"), 0),
    ],
    ids=["a key of the wrong type", "junk"],
)
def test_a_wrong_wake_up_does_not_turn_the_loop_for_ever(
    channel: Any, broker: redis.Redis, spoilt: Any, repairs: int
) -> None:
    """A waiting worker repairs or removes it, and waits again: nothing is raised."""
    spoilt(broker)
    channel.basic_consume(QUEUE, no_ack=False, callback=print, consumer_tag="1")
    with pytest.raises(TimeoutError):
        channel.connection.client.drain_events(timeout=1)
    assert (mended(broker), broker.llen(WAKE)) == (repairs, 0)


def test_what_is_put_aside_is_bounded(broker: redis.Redis) -> None:
    """Otherwise a client that repeats it would fill Redis."""
    for number in range(120):
        spoil(broker, queue_key(QUEUE, "submissions", f"o{number}"), "zset")
    assert quarantine_wrong_keys(broker, QUEUE)
    assert len(broker.keys(wrong_key(QUEUE, "*"))) == 100
    assert broker.keys(queue_key(QUEUE, "submissions", "*")) == []
