"""fleet/sending.py: a hint is the message that Celery's own sender makes, however it is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from celery import current_app
from celery.signals import after_task_publish, before_task_publish
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kombu import Connection

from fleet import Hint
from fleet.keys import queue_key
from fleet.sending import Sender
from tests.fleet.hinting import QUEUE, hint
from tests.jobs.scenes import messages

OWNERS = ("acme", "a-7.b_c", "x" * 64, "100%s")

hints = st.builds(
    hint,
    owner=st.sampled_from(OWNERS[:3]),
    submission=st.none() | st.integers(1, 2**40),
    token=st.integers(1, 2**31 - 1),
    attempt=st.integers(1, 100),
    priority=st.integers(0, 9),
    task=st.sampled_from(["tests.add", "тест.%s.%d", 'quoted "name"']),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with current_app.connection_for_write() as connection:
        yield connection


def kept(client: redis.Redis, send: Callable[[], None]) -> tuple[set[bytes], float, Any]:
    """Return what the queue has of a message: the keys, its place in line, and itself."""
    client.flushdb()
    before = time.time()
    send()
    [line] = client.keys(queue_key(QUEUE, "ready", "*"))
    [(_, order)] = client.zrange(line, 0, -1, withscores=True)
    [message] = messages()
    del message["properties"]["delivery_tag"]  # a random one each time
    return set(client.keys()), order / 1_000_000 - before, message


@given(sent=hints)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_filled_template_is_celery_s_own_message(
    sent: Hint, client: redis.Redis, connection: Connection
) -> None:
    """To the last header, in the same line and place, with every value of every kind."""
    sender, channel = Sender(current_app), connection.default_channel

    def by_celery() -> None:
        with sender._producer(channel) as producer:
            sender._publish(producer, sent)

    keys, place, message = kept(client, lambda: sender.send(channel, [sent]))
    its_keys, its_place, its_message = kept(client, by_celery)
    assert (message, keys) == (its_message, its_keys)
    assert abs(place - its_place) < 1


@pytest.mark.parametrize("has_events", [False, True])
def test_hints_of_many_kinds_arrive(
    has_events: bool, client: redis.Redis, connection: Connection
) -> None:
    """Of fair queues and stock ones, of owners good and bad, in one call."""
    sent = [hint(owner=owner, priority=n) for n, owner in enumerate(OWNERS)]
    sent.append(hint(queue="system"))
    current_app.conf.task_send_sent_event = has_events
    try:
        Sender(current_app).send(connection.default_channel, sent)
    finally:
        current_app.conf.task_send_sent_event = False
    assert {message["headers"]["id"] for message in messages()} == {one.run_id for one in sent[:-1]}
    assert sum(map(client.llen, client.keys("system*"))) == 1


def test_who_looks_at_messages_sees_every_hint(client: redis.Redis, connection: Connection) -> None:
    """A receiver of Celery's signals is called for each, and what it adds travels."""
    seen = []

    def add(headers: dict[str, Any], **_: Any) -> None:
        headers["traceparent"] = f"of {headers['id']}"

    def note(headers: dict[str, Any], **_: Any) -> None:
        seen.append(headers["id"])

    sent = [hint() for _ in range(3)]
    sender, channel = Sender(current_app), connection.default_channel
    sender.send(channel, [hint()])
    before_task_publish.connect(add)
    after_task_publish.connect(note)
    try:
        sender.send(channel, sent)
    finally:
        before_task_publish.disconnect(add)
        after_task_publish.disconnect(note)
    ids = [one.run_id for one in sent]
    assert seen == ids
    traced = {message["headers"].get("traceparent") for message in messages()}
    assert traced == {None, *(f"of {run_id}" for run_id in ids)}


def test_an_owner_that_no_key_may_hold_goes_to_the_shared_one(
    client: redis.Redis, connection: Connection
) -> None:
    """As every message does whose owner cannot be: its keys would be another's."""
    Sender(current_app).send(connection.default_channel, [hint(owner="a|b")])
    assert client.zrange(queue_key(QUEUE, "owners"), 0, -1) == [b"shared"]
