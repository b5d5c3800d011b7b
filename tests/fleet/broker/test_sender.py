"""fleet/broker/sender.py: a hint arrives as the message that Celery would make."""

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

from fleet import HEADER, Hint
from fleet.broker.sender import Sender
from fleet.keys import queue_key
from fleet.transport.envelope import delivered, parsed
from tests.fleet.hinting import QUEUE, hint
from tests.jobs.scenes import messages

UNPACK = "return {cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))}"
OWNERS = ("acme", "a-7.b_c", "x" * 64, "100%s")

hints = st.builds(
    hint,
    owner=st.sampled_from(OWNERS[:3]),
    submission=st.none() | st.integers(1, 2**40),
    token=st.integers(1, 2**31 - 1),
    attempt=st.integers(1, 100),
    priority=st.integers(0, 9),
    task=st.sampled_from(["tests.add", "тест.%s.%d", 'quoted "name"']),
    job=st.none() | st.integers(1, 2**63 - 1),
    lock=st.sampled_from(["", "db", 'a "quoted/замок" \\', "x" * 201, "a\nline"]),
    delay_seconds=st.just(0.0) | st.floats(60, 30 * 86_400) | st.floats(-30 * 86_400, -60),
    not_after_seconds=st.none() | st.floats(-86_400, 30 * 86_400),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with current_app.connection_for_write() as connection:
        yield connection


class Kept:
    """The queue's facts about one message."""

    def __init__(self, client: redis.Redis, send: Callable[[], None]) -> None:
        client.flushdb()
        before = time.time()
        send()
        self.keys = set(client.keys())
        [known] = client.hkeys(queue_key(QUEUE, "meta"))
        self.known = known
        unpacked = client.eval(UNPACK, 1, queue_key(QUEUE, "meta"), known)
        owner, submission, lock, task, order, deadline, _published, priority, *_returned = unpacked
        self.facts = (owner, submission, lock, task, deadline > 0, priority)
        # In seconds from now: its place in line, its deadline, and when it is due.
        self.place = order / 1_000_000 - before
        self.deadline = deadline / 1_000_000 - before if deadline else 0.0
        due = client.zscore(queue_key(QUEUE, "delayed"), known)
        self.due = due / 1_000_000 - before if due else 0.0
        raw = client.hget(queue_key(QUEUE, "body"), known)
        self.message = delivered(raw, tag="")  # without it, a random one each time


@given(sent=hints)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    # One failure is one error, whose kind `tests/mutations` looks for.
    report_multiple_bugs=False,
)
def test_a_stored_hint_becomes_celery_s_own_message(
    sent: Hint, client: redis.Redis, connection: Connection
) -> None:
    """To the last header, with every value of every kind; but it does not name its sender."""
    sender, channel = Sender(current_app), connection.default_channel

    def by_celery() -> None:
        with sender._producer(channel) as producer:
            sender._publish(producer, sent)

    ours, celerys = Kept(client, lambda: sender.send(channel, [sent])), Kept(client, by_celery)
    for message in (ours.message, celerys.message):
        message["headers"].pop("origin", None)
    assert ours.message == celerys.message
    assert (ours.keys, ours.known, ours.facts) == (celerys.keys, celerys.known, celerys.facts)
    assert abs(ours.place - celerys.place) < 1
    assert abs(ours.deadline - celerys.deadline) < 1
    assert abs(ours.due - celerys.due) < 1


def test_hints_of_one_call_keep_their_own_values(
    client: redis.Redis, connection: Connection
) -> None:
    """Jobs, locks and delays differ between hints of one task."""
    sent = [hint(job=n, lock=f"lock-{n}", delay_seconds=60.0 * n) for n in range(1, 4)]
    sent += [hint(job=n) for n in range(4, 6)]
    Sender(current_app).send(connection.default_channel, sent)
    bodies = client.hgetall(queue_key(QUEUE, "body")).values()
    found = [parsed(body)["headers"][HEADER] for body in bodies]
    assert sorted((facts["job"], facts.get("lock"), facts["run"]) for facts in found) == [
        (one.job, one.lock or None, one.run_id) for one in sent
    ]
    delayed = client.zrange(queue_key(QUEUE, "delayed"), 0, -1, withscores=True)
    assert [known.decode() for known, _ in delayed] == [f"{one.run_id}:1" for one in sent[:3]]
    assert [round(due / 1_000_000 - time.time(), -1) for _, due in delayed] == [60, 120, 180]
    assert {message["headers"]["id"] for message in messages()} == {one.run_id for one in sent[3:]}


@pytest.mark.parametrize("has_receiver", [False, True])
def test_a_hint_past_its_deadline_is_not_delivered(
    has_receiver: bool, client: redis.Redis, connection: Connection
) -> None:
    """Each has its own, by either way of sending; the next one comes, and the queue is empty."""
    late = [hint(not_after_seconds=0.0, lock=lock) for lock in ("db", "")]
    late.append(hint(not_after_seconds=-5.0, delay_seconds=-10.0))
    fine = [hint(not_after_seconds=60.0), hint()]
    channel = connection.default_channel
    if has_receiver:
        before_task_publish.connect(_look)
    try:
        Sender(current_app).send(channel, [*late, *fine])
    finally:
        before_task_publish.disconnect(_look)
    got = [channel.basic_get(QUEUE) for _ in fine]
    assert [it and it.headers["id"] for it in got] == [one.run_id for one in fine]
    assert [it.headers[HEADER].get("not_after_seconds") for it in got if it] == [None, None]
    assert channel.basic_get(QUEUE) is None
    assert client.hlen(queue_key(QUEUE, "meta")) == len(fine)
    assert client.llen(QUEUE) == 0
    assert client.hget(queue_key(QUEUE, "counters"), "diverted") == b"%d" % len(late)
    for it in got:
        if it:
            it.ack()


def _look(**_: Any) -> None: ...


@pytest.mark.parametrize("has_events", [False, True])
def test_hints_of_many_kinds_arrive(
    has_events: bool, client: redis.Redis, connection: Connection
) -> None:
    """Fair and stock queues, valid and invalid owners, in one call."""
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
    """A receiver of Celery's signals is called for each; headers that it adds are sent."""
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


def test_the_same_hint_twice_in_one_go_is_one(client: redis.Redis, connection: Connection) -> None:
    """A later one is the same too, whatever its lock and delay."""
    sender, channel = Sender(current_app), connection.default_channel
    once, twice = hint(), hint()
    sender.send(channel, [once, twice, twice])
    sender.send(channel, [twice._replace(delay_seconds=5.0), once._replace(lock="x")])
    ids = sorted(message["headers"]["id"] for message in messages())
    assert ids == sorted([once.run_id, twice.run_id])
    assert client.zcard(queue_key(QUEUE, "delayed")) == 0
    assert client.hget(queue_key(QUEUE, "counters"), "published") == b"2"
    assert client.hget(queue_key(QUEUE, "counters"), "duplicates") == b"3"
    assert client.llen(QUEUE) == 2
