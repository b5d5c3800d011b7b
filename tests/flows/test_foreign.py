"""What a client of the broker can make a worker do: nothing without a row, nothing for long."""

import json
import threading
import uuid
import zlib
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from socket import gethostname
from time import monotonic
from typing import Any

import pytest
import redis
from celery import current_app

from jobs import submit
from jobs.management.stack import programs
from jobs.models import Owner
from tests.control import await_heard
from tests.flows import plain
from tests.flows.foreign import PIDBOX, call, message, signature
from tests.flows.processes import Processes
from tests.flows.world import ended
from tests.judge import read_task_events
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

WORKER = f"worker@{gethostname()}"


def test_no_plain_message_calls_the_body_of_a_task_that_requires_a_row(
    processes: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """Nor do Celery's map, starmap and chunks, or errbacks, which call in place."""
    worker = processes.start(programs.job_worker("worker", slots=1))
    system = processes.start_system()
    processes.ready()
    row = signature("flows.offered")
    indirect = [
        call("celery.map", row, ["no row"]),
        call("celery.map", "flows.offered", ["no row"]),
        call("celery.starmap", row, [["no row"]]),
        call("celery.chunks", row, [[["no row"]]], 1),
        call("celery.starmap", signature("celery.map"), [[row, ["no row"]]]),
        call(
            "flows.misbehave",
            "value_error",
            errbacks=[signature("flows.offered_twice", "no row", "no row")],
        ),
    ]
    for queue in "jobs", "system":
        broker.lpush(queue, *indirect)
        broker.lpush(queue, call("celery.starmap", signature("tests.add"), [[1, 2]]))
    passed = lambda: [event.task for event in read_task_events(processes.tasks.path)]  # noqa: E731
    wait_for(lambda: passed().count("tests.add") >= 4, what="the last of both queues")
    assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    assert not {"flows.offered", "flows.offered_twice"} & set(passed())
    assert worker.is_alive and system.is_alive


BLANKS = 256 * 2**20


def pidbox(broker: redis.Redis) -> str:
    """Return the channel of remote control."""
    return PIDBOX.format(broker.connection_pool.connection_kwargs.get("db") or 0)


HOSTILE = [
    *((r"(?:(?:.|\w)+)+!", "pcre"), (r".*", "pcre")),
    *(("[a-z]" * 200_000, "glob"), (["*"], "glob"), ("*", 7)),
]
"""Patterns of nodes, and how they match: the first keeps Python's `re` busy for years."""


def ping(pattern: Any, matcher: Any, *, seconds: float = 3) -> bool:
    """Say whether the worker answers a ping to the nodes that match."""
    replies = current_app.control.broadcast(
        *("ping", None), reply=True, timeout=seconds, limit=1, pattern=pattern, matcher=matcher
    )
    return replies == [{WORKER: {"ok": "pong"}}]


def test_no_message_keeps_a_worker_busy(
    processes: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """Neither one that unpacks to gigabytes, nor a pattern that matches for years.

    Celery's own default pattern is followed.
    """
    worker = processes.start(programs.job_worker("worker", slots=1))
    system = processes.start_system()
    processes.ready()
    await_heard(current_app, WORKER)
    booted = len(worker.log.read_text())
    bomb = zlib.compress(b" " * BLANKS, 9)
    for channel, said in (
        ("jobs", call("tests.add", body=bomb, compression="gzip")),
        ("system", call("tests.add", body=bomb, compression="gzip")),
        (pidbox(broker), message(bomb, {"compression": "gzip"})),
    ):
        if channel in {"jobs", "system"}:
            broker.lpush(channel, said)
        else:
            assert broker.publish(channel, said)
        assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    for pattern, matcher in HOSTILE:
        assert not ping(pattern, matcher, seconds=1)
        assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    for process in (worker, system):
        assert process.is_alive
        assert _most_memory(process.pid) < BLANKS
    log = worker.log.read_text()[booted:]
    assert "the event loop has not turned" not in log
    assert "refused a command to the nodes" in log
    assert ping("worker@*", "glob") and not ping("other@*", "glob", seconds=1)


def _most_memory(pid: int) -> int:
    """Return the most bytes that a process has had in memory."""
    with open(f"/proc/{pid}/status") as status:
        [line] = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@contextmanager
def replying(broker: redis.Redis, *replies: tuple[bytes, str], times: int = 1) -> Iterator[None]:
    """Reply to each hello with these bodies of these types, `times` times, 0.8 s apart."""
    heard = broker.pubsub()
    heard.subscribe(pidbox(broker))
    is_over = threading.Event()

    def reply() -> None:
        while not is_over.is_set():
            said: Any = heard.get_message(timeout=0.1)
            if said and said["type"] == "message":
                answer(json.loads(b64decode(json.loads(said["data"])["body"])))

    def answer(hello: dict[str, Any]) -> None:
        where = hello["reply_to"]
        key, exchange = where["routing_key"], where["exchange"]
        for number in range(times):
            for body, kind in replies:
                ticket = hello["ticket"] if number == 0 else "another"
                sent = json.loads(message(body, {"ticket": ticket}, exchange=exchange, key=key))
                sent["content-type"] = kind
                broker.lpush(f"{key}.{exchange}", json.dumps(sent))
            is_over.wait(0.8 if times > 1 else 0)

    thread = threading.Thread(target=reply)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        heard.close()


JSON = "application/json"
JUNK = [
    *((body, JSON) for body in (b"5", b"[5]", b'["ab"]', b'[["a", "b"]]', b"[" * 100_000)),
    (b'{"other@there": {"clock": "x", "revoked": 5}}', JSON),
    (b"x", "application/x-python-serialize"),
]


@pytest.mark.parametrize(("replies", "times"), [(JUNK, 1), ([(b"{}", JSON)], 100)])
def test_a_worker_boots_whatever_replies_to_its_hello(
    processes: Processes,
    owner: Owner,
    broker: redis.Redis,
    replies: list[tuple[bytes, str]],
    times: int,
) -> None:
    """Invalid replies are dropped, and the worker does not wait for endless ones."""
    with replying(broker, *replies, times=times):
        began_at = monotonic()
        worker = processes.start(programs.job_worker("worker", slots=1))
        worker.ready(seconds=30)
        assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    assert "mingle: s" in worker.log.read_text() and monotonic() < began_at + 60


@pytest.mark.parametrize("opened", ["", "revoke"])
def test_no_reply_to_its_hello_revokes_a_task(
    processes: Processes, broker: redis.Redis, opened: str
) -> None:
    """Unless `revoke` is open: then workers exchange revoked ids, as in Celery."""
    first, last = str(uuid.uuid4()), str(uuid.uuid4())
    forged = json.dumps({"forger@elsewhere": {"revoked": [first], "clock": 1}}).encode()
    with replying(broker, (forged, JSON)):
        worker = processes.start(
            programs.job_worker("worker", slots=1), FAIRSHIFT_REMOTE_COMMANDS=opened
        )
        worker.ready(seconds=60)
    assert "mingle: sync complete" in worker.log.read_text()
    revoked, kept = (
        plain.add.apply_async((1, 2), task_id=task_id, queue="jobs") for task_id in (first, last)
    )
    assert kept.get(timeout=300) == 3
    if opened:
        wait_for(lambda: revoked.state == "REVOKED", what="a task that its id has revoked")
    else:
        assert revoked.get(timeout=300) == 3
