"""Forged messages between workers: none stalls a worker or makes it drop a task."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from socket import gethostname
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app

from fleet.stack import programs
from jobs import submit
from jobs.models import Owner
from tests.control import await_heard
from tests.flows import plain
from tests.flows.processes import Processes
from tests.flows.world import ended
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

WORKER = f"worker@{gethostname()}"
SLOW = "(.*){60}!"
"""Nine characters that keep Python's `re` busy for years."""


def ping(pattern: Any, matcher: Any, *, seconds: float = 3) -> bool:
    """Say whether the worker answers a ping to the nodes that match."""
    replies = current_app.control.broadcast(
        *("ping", None), reply=True, timeout=seconds, limit=1, pattern=pattern, matcher=matcher
    )
    return replies == [{WORKER: {"ok": "pong"}}]


def test_no_pattern_stalls_a_worker(processes: Processes, owner: Owner) -> None:
    """A regular expression and a long pattern are refused; Celery's own default is followed."""
    worker = processes.start_worker(slots=1)
    processes.ready()
    await_heard(current_app, WORKER)
    assert ping("worker@*", "glob")
    hostile = [(SLOW, "pcre"), (r".*", "pcre"), ("*" * 1_000, "glob"), (["*"], "glob"), ("*", 7)]
    for pattern, matcher in hostile:
        assert not ping(pattern, matcher, seconds=1)
    began_at = time.monotonic()
    assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    assert time.monotonic() - began_at < 100
    assert ping("worker@*", "glob") and not ping("other@*", "glob", seconds=1)
    assert "refused a command to the nodes" in worker.log.read_text()


@contextmanager
def forger(revoked: list[str]) -> Iterator[Event]:
    """Answer each new worker's greeting, as a worker would that knows of these revoked tasks."""
    heard, stopped = Event(), Event()

    def greet(_state: Any, **_arguments: Any) -> dict[str, Any]:
        heard.set()
        return {"revoked": revoked, "clock": 1}

    node = current_app.control.mailbox.Node("forger@elsewhere", handlers={"hello": greet})

    def listen() -> None:
        with current_app.connection_for_read() as connection:
            node.channel = connection.channel()
            node.listen()
            while not stopped.is_set():
                try:
                    connection.drain_events(timeout=0.2)
                except TimeoutError:
                    continue

    thread = Thread(target=listen, daemon=True)
    thread.start()
    yield heard
    stopped.set()
    thread.join(100)


@pytest.mark.parametrize("opened", ["", "revoke"])
def test_no_answer_to_a_greeting_revokes_a_task(processes: Processes, opened: str) -> None:
    """Unless `revoke` is open: then workers exchange revoked ids, as in Celery."""
    first, last = str(uuid4()), str(uuid4())
    with forger([first]) as heard:
        worker = programs.job_worker("worker", slots=1)
        processes.start(worker, FAIRSHIFT_REMOTE_COMMANDS=opened)
        processes.ready(seconds=60)
        wait_for(heard.is_set, what="the worker's greeting")
    revoked, kept = (
        plain.add.apply_async((1, 2), task_id=task_id, queue="jobs") for task_id in (first, last)
    )
    assert kept.get(timeout=300) == 3
    if opened:
        wait_for(lambda: revoked.state == "REVOKED", what="a task that its id has revoked")
    else:
        assert revoked.get(timeout=300) == 3
