"""fleet/broker/inbox.py: a queue read in order; what stock Celery sends, and junk."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery, current_app
from redis import Redis

from fleet.broker import inbox

QUEUE = "inbox"


@pytest.fixture
def sender() -> Iterator[Celery]:
    """Another service's app: it has the broker, and nothing of Fairshift."""
    app = Celery("elsewhere", broker=current_app.conf.broker_url, set_as_current=False)
    yield app
    app.close()


def waiting(client: Redis) -> int:
    return sum(client.llen(name) for name in inbox.lists(QUEUE))


def oldest(client: Redis, most: int = 100) -> list[inbox.Call]:
    return list(inbox.calls(inbox.oldest(client, QUEUE, most=most)))


def test_calls_come_in_the_order_of_their_sending(client: Redis, sender: Celery) -> None:
    """Reading removes nothing; a drop removes exactly what was read."""
    for number in range(600):
        sender.send_task("some.task", (number,), {"k": "ü"}, queue=QUEUE)
    raws = inbox.oldest(client, QUEUE, most=500)
    assert [call.args for call in inbox.calls(raws)] == [[number] for number in range(500)]
    assert waiting(client) == 600
    sender.send_task("some.task", (600,), queue=QUEUE)
    inbox.drop(client, QUEUE, raws)
    assert [call.args for call in oldest(client)] == [[number] for number in range(500, 600)]
    # Again, as if another reader had dropped them: no unread call goes.
    inbox.drop(client, QUEUE, raws)
    assert waiting(client) == 101


def test_a_call_has_what_was_sent(client: Redis, sender: Celery) -> None:
    """Its id, its arguments in the types of kombu's JSON, and whether a result is wanted."""
    sender.send_task(
        "a", ("x", [1.5, None]), {"b": True}, queue=QUEUE, task_id="one", ignore_result=False
    )
    sender.send_task("b", queue=QUEUE, task_id="two")
    assert oldest(client) == [
        inbox.Call("one", "a", ["x", [1.5, None]], {"b": True}, wants_result=True),
        inbox.Call("two", "b", [], {}, wants_result=False),
    ]


def test_large_messages_come_in_smaller_numbers(
    client: Redis, sender: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by bytes; one comes in any case."""
    monkeypatch.setattr(inbox, "BYTES", 10_000)
    for size in (10, 10, 10, 6_000, 6_000, 30_000, *[10] * 6):
        sender.send_task("a", ("x" * size,), queue=QUEUE)
    sizes = []
    while raws := inbox.oldest(client, QUEUE, most=5):
        sizes.append([len(call.args[0]) for call in inbox.calls(raws)])
        inbox.drop(client, QUEUE, raws)
    assert sizes == [[10, 10, 10], [6_000], [6_000], [30_000], [10] * 5, [10]]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"countdown": 60}, "carries eta"),
        ({"expires": 60}, "carries expires"),
        ({"link": "l"}, "carries callbacks"),
        ({"compression": "zlib"}, "is compressed"),
        ({"serializer": "pickle"}, "pickle"),
    ],
)
def test_what_this_queue_cannot_promise_is_a_problem(
    client: Redis, sender: Celery, options: dict[str, Any], problem: str
) -> None:
    """Instead of being left out of account."""
    if "link" in options:
        options = {"link": sender.signature("other.task")}
    sender.send_task("a", queue=QUEUE, task_id="one", **options)
    [call] = oldest(client)
    assert (call.id, call.task) == ("one", "a")
    assert problem in call.problem


BODY = base64.b64encode(b"[[], {}, {}]").decode()
PLAIN = {"content-type": "application/json", "content-encoding": "utf-8"}
ENCODED = {"body_encoding": "base64"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b'{"headers": 1, "properties": 2, "body": 3}',
        b"[" * 100_000,
        json.dumps({"headers": {}, "properties": {}, "body": BODY, **PLAIN}).encode(),
        *(
            json.dumps(
                {"headers": {"id": "i", "task": "t"}, "properties": ENCODED, "body": body, **PLAIN}
            ).encode()
            for body in ("", "!", BODY[:5], 7, base64.b64encode(b"[1, 2, 3]").decode())
        ),
    ],
)
def test_bytes_that_are_no_call_are_a_problem(client: Redis, raw: bytes) -> None:
    """Its text is short, and it does not stop the calls behind it."""
    good = {"headers": {"id": "i", "task": "t"}, "properties": ENCODED, "body": BODY, **PLAIN}
    client.lpush(QUEUE, raw, json.dumps(good))
    bad, call = oldest(client)
    assert bad.problem and len(bad.problem) <= 300
    assert call == inbox.Call("i", "t", [], {})
