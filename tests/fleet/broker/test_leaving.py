"""fleet/broker/leaving.py: calls go to plain lists, and Fairshift's keys go away."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from celery import current_app

from fleet import Broker, BrokerUnavailable, count_keys, delete_keys, messages_left, move_calls
from tests.fleet.hinting import QUEUE as FAIR
from tests.fleet.hinting import call, hint, pushed_by_stock

PLAIN = "celery"


def taken(client: redis.Redis, queue: str) -> list[str]:
    """Return the ids of the calls in a plain list, from the end at which stock Kombu takes them."""
    return [json.loads(raw)["headers"]["id"] for raw in reversed(client.lrange(queue, 0, -1))]


def test_calls_move_in_order(client: redis.Redis) -> None:
    """Of every owner, delayed and parked ones too; stock takes each once."""
    locked: dict[str, Any] = {"headers": {"fairshift": {"owner": "acme", "lock": "door"}}}
    ids = [call() for _ in range(30)] + [call(**locked) for _ in range(2)]
    ids.append(call(eta=datetime.now(UTC) + timedelta(hours=1)))
    assert messages_left(current_app, timeout=5) == {"calls": 33}
    assert move_calls(current_app, {FAIR: PLAIN}, timeout=5) == 33
    assert messages_left(current_app, timeout=5) == {}
    assert move_calls(current_app, {FAIR: PLAIN}, timeout=5) == 0
    assert taken(client, PLAIN) == ids
    # By these, a stock worker puts a message back.
    targets = [
        json.loads(raw)["properties"]["delivery_info"] for raw in client.lrange(PLAIN, 0, -1)
    ]
    assert {(each["exchange"], each["routing_key"]) for each in targets} == {("", PLAIN)}


def test_what_a_stock_client_has_sent_moves_too(client: redis.Redis) -> None:
    """Though no worker has adopted it yet."""
    theirs, ours = pushed_by_stock(client), call()
    assert messages_left(current_app, timeout=5) == {"calls": 2}
    assert move_calls(current_app, {FAIR: PLAIN}, timeout=5) == 2
    assert set(taken(client, PLAIN)) == {ours, theirs}


def test_a_queue_may_keep_its_name(client: redis.Redis) -> None:
    """Its placeholders do not stay between its calls."""
    ids = [call() for _ in range(3)]
    move_calls(current_app, {FAIR: FAIR}, timeout=5)
    delete_keys(current_app, [], timeout=5)
    assert taken(client, FAIR) == ids


def test_hints_and_leased_messages_stay(broker: Broker) -> None:
    """Those are work that is not done."""
    call()
    with current_app.connection_for_read() as connection:
        assert connection.default_channel.basic_get(FAIR) is not None
        broker.publish([hint()], timeout=5)
        call(task="fairshift.system.notify")
        left = {"hints": 1, "leased": 1, "ours": 1}
        assert messages_left(current_app, timeout=5) == left
        assert move_calls(current_app, {FAIR: PLAIN}, timeout=5) == 0
        assert messages_left(current_app, timeout=5) == left


def test_only_our_keys_are_deleted(client: redis.Redis) -> None:
    """And our queues with their bindings; messages of other tasks stay in them."""
    kept = {"theirs": "1", "fairshift": "2"}
    client.mset(kept)
    call("mail")
    call("system", task="fairshift.system.pulse")
    call("inbox", task="fairshift.upsert_jobs")
    theirs = call("inbox")
    call(task="fairshift.system.notify")
    before = set(client.scan_iter("fairshift:*"))
    assert count_keys(current_app, timeout=5) == len(before) > 0
    own = [FAIR, "system", "inbox"]
    assert delete_keys(current_app, own, timeout=5) == len(before)
    left = {key.decode() for key in client.scan_iter()}
    assert {name for name in left if not name.startswith("_kombu")} == {*kept, "mail", "inbox"}
    assert not [name for name in left if name.endswith((f".{FAIR}", ".system"))], left
    assert taken(client, "inbox") == [theirs]
    assert delete_keys(current_app, own, timeout=5) == 0


def test_a_move_that_fails_loses_nothing(client: redis.Redis) -> None:
    """A list of the wrong type: the message stays in the fair queue."""
    call()
    client.set(PLAIN, "no list")
    with pytest.raises(BrokerUnavailable, match="WRONGTYPE"):
        move_calls(current_app, {FAIR: PLAIN}, timeout=5)
    assert messages_left(current_app, timeout=5) == {"calls": 1}
