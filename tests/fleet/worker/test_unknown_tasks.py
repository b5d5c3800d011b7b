"""fleet/worker/unknown_tasks.py: other workers get hints of tasks that this one lacks."""

import logging
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from celery.concurrency.solo import TaskPool

from fleet import Node as Description
from fleet.worker import unknown_tasks as unknown_module
from fleet.worker.consumer import Consumer
from fleet.worker.unknown_tasks import UnknownTasks, pause_before
from jobs import submit
from jobs.models import Owner, Worker
from jobs.runs.dispatch import broker
from jobs.system.heartbeat import beat
from tests.fleet.nodes import Node, double
from tests.jobs.scenes import known
from tests.jobs.without_history import due_hint, job_without_history
from tests.logged import logged

pytestmark = pytest.mark.usefixtures("committed")


class OldNode(Node):
    """A node whose worker knows only `tests.add`: it meets hints as Celery's consumer does."""

    def __init__(self) -> None:
        super().__init__(TaskPool(1, app=current_app))
        Worker.objects.filter(id=self.id).update(tasks=["tests.add"])
        self.pauses: list[float] = []
        self.consumer: Any = Consumer.__new__(Consumer)
        self.consumer.app, self.consumer.event_dispatcher = self.app, None
        self.consumer.connection_errors = (OSError,)
        self.consumer.unknown = UnknownTasks(
            self.io_thread,
            later=self._put_off,
            settle=lambda p, *args, **kwargs: p(*args, **kwargs),
        )

    def _put_off(self, seconds: float, *later: Any) -> None:
        self.pauses.append(seconds)

    def meet(self) -> Any:
        """Take the next message off the broker as one of an unknown task; return it."""
        message = self.channel.basic_get("jobs")
        assert message is not None, "a message waits"
        self.consumer.on_unknown_task(None, message, KeyError(message.headers["task"]))
        return message

    def has_settled(self, message: Any) -> Any:
        """Meet the end of a message: dropped, or given back."""
        self.turn(until=lambda: message.delivery_tag not in self.channel.leases)
        self.channel.settle()
        return message


@pytest.fixture
def node() -> Iterator[OldNode]:
    node = OldNode()
    yield node
    node.end()


def knowing_worker(*, queues: tuple[str, ...] = ("jobs",)) -> Description:
    """Return a live worker that knows the task of these scenes."""
    worker = Description(uuid4(), "new@here", 1, "prefork", 4, queues, ["tests.gate.double"])
    beat(worker, [])
    return worker


def test_a_hint_goes_back_to_the_queue_when_another_worker_knows_its_task(
    node: OldNode, acme: Owner
) -> None:
    """At once the first time: an idle worker that knows it starts the run within milliseconds.

    One that comes back rests in Redis, where it takes no slot of this worker.
    """
    run = submit(double, 1, owner=acme)
    knowing_worker()
    node.has_settled(node.meet())
    run.refresh_from_db()
    assert (run.state, run.blocked_by) == ("queued", "")
    again = node.has_settled(node.meet())
    assert again.headers["id"] == str(run.id)
    assert node.channel.basic_get("jobs") is None
    assert (len(known()), node.pauses) == (1, [])


def test_pauses_grow_and_end_with_an_offer() -> None:
    """After each pause the message is offered to the other workers before the next, longer one."""
    pauses = [pause_before(returns, known=1, chance=0.5) for returns in range(12)]
    assert pauses[::2] == [0.0] * 6
    assert pauses[1::2] == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("queues", [(), ("slow",)])
def test_a_hint_is_dropped_when_no_worker_of_the_queue_knows_its_task(
    node: OldNode, acme: Owner, queues: tuple[str, ...]
) -> None:
    """Its row waits, and the queue is rid of it: no worker takes it again and again.

    A worker that knows the task frees it with its first heartbeat.
    """
    run = submit(double, 1, owner=acme)
    if queues:
        knowing_worker(queues=queues)
    node.has_settled(node.meet())
    run.refresh_from_db()
    assert (run.state, run.blocked_by, run.token) == ("queued", "task", 0)
    assert known() == []
    knowing_worker()
    run.refresh_from_db()
    assert run.blocked_by == ""
    assert known() == [f"{run.id}:1"]


@pytest.mark.parametrize("task", [1.5, 7, True, None, "half \ud800", "with \0"])
def test_a_hint_whose_task_is_no_name_is_dropped(node: OldNode, acme: Owner, task: Any) -> None:
    """PostgreSQL could not be asked of it, nor of any other run of the same batch."""
    knowing_worker()
    submit(double, 1, owner=acme)
    message = node.channel.basic_get("jobs")
    message.headers["task"] = task
    node.consumer.on_unknown_task(None, message, KeyError(task))
    node.has_settled(message)
    assert known() == []


def test_a_run_without_a_row_stays_in_the_queue(node: OldNode, acme: Owner) -> None:
    """No row would bring its hint again."""
    hint = due_hint(job_without_history(acme))
    broker().publish([hint], timeout=5)
    node.has_settled(node.meet())
    assert known() == [f"{hint.run_id}:1"]


def test_a_task_is_logged_once_a_minute(
    node: OldNode, acme: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By name, in one line and without a traceback, however many runs it has."""
    for number in range(3):
        submit(double, number, owner=acme)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            node.has_settled(node.meet())
        assert [line["task"] for line in logged(caplog)] == ["tests.gate.double"]
        monkeypatch.setattr(unknown_module, "LOG_SECONDS", 0.0)
        node.has_settled(node.meet())
    lines = logged(caplog)
    assert len(lines) == 2
    assert lines[0]["level"] == "WARNING"
    assert "Traceback" not in caplog.text
