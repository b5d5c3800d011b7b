"""fleet/pool/soft_stop.py in a real child: a soft signal ends the job that it names."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Task, current_app, shared_task

from fleet.worker import child
from jobs import submit
from jobs.catalog.registry import resolve
from jobs.models import Owner
from jobs.wiring import application
from tests.fleet.nodes import nap
from tests.fleet.pool.test_prefork import PreforkNode
from tests.jobs.scenes import states
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("committed")


class Slow(Task):
    """Takes its time before or after its body, and writes to a file where it is."""

    def before_start(self, _id: str, _args: Any, kwargs: dict[str, Any]) -> None:
        self._rest("before", **kwargs)

    def after_return(
        self, _state: str, _value: Any, _id: str, _args: Any, kwargs: dict[str, Any], _info: Any
    ) -> None:
        self._rest("after", **kwargs)

    def _rest(self, here: str, path: str, where: str) -> None:
        if here == where:
            Path(path).write_text(here)
            time.sleep(0.5)


@shared_task(name="tests.soft_stop.slow", base=Slow)
def slow(path: str, where: str) -> None:
    """Note that the body has begun."""
    with Path(path).open("a") as file:
        file.write(" body")


@pytest.fixture
def node() -> Iterator[PreforkNode]:
    child.install({slow.name: resolve(slow)}, application())
    node = PreforkNode()
    yield node
    node.end()


def _begun(node: PreforkNode, task: Any, acme: Owner, *args: Any) -> tuple[Any, Any]:
    """Return a run that the child has read, and the gate's entry of it."""
    run = submit(task, *args, owner=acme)
    node.start()
    held = node.holds(run)
    node.work(until=lambda: held.started_at)
    return run, held


def _is_still_the_child(node: PreforkNode, pid: int) -> bool:
    return bool(node.child.pid == pid and not node.child.has_ended())


def test_a_signal_for_the_job_before_does_not_end_this_one(node: PreforkNode, acme: Owner) -> None:
    """It can arrive when the child has gone on, and the next job may be another owner's."""
    run, held = _begun(node, nap, acme, 0.5)
    process = node.child
    process.row.ask_to_stop(held.job.number - 1)
    os.kill(process.pid, signal.SIGUSR1)
    node.work(until=lambda: not node.gate.held())
    assert states(run)[-1] == "succeeded"
    assert _is_still_the_child(node, process.pid)


def test_its_own_signal_ends_the_body(node: PreforkNode, acme: Owner) -> None:
    """The task sees Celery's SoftTimeLimitExceeded, and its process lives."""
    run, held = _begun(node, nap, acme, 30)
    process = node.child
    time.sleep(0.1)  # the body begins a moment after it is read
    assert held.job.ask_to_stop()
    os.kill(process.pid, signal.SIGUSR1)
    node.work(until=lambda: not node.gate.held())
    assert states(run)[-1] == "retrying"
    assert run.attempts.get().error_type.endswith("SoftTimeLimitExceeded")
    assert _is_still_the_child(node, process.pid)


@pytest.mark.parametrize(("where", "state"), [("before", "cancelled"), ("after", "succeeded")])
def test_what_is_stopped_before_its_body_does_not_begin(
    node: PreforkNode, acme: Owner, tmp_path: Path, where: str, state: str
) -> None:
    """Celery's trace would end with a run that counts as done, or the child would end.

    After its body it is done, and its end is reported as it was.
    """
    path = tmp_path / "where"
    run, held = _begun(node, slow, acme, str(path), where)
    wait_for(lambda: path.exists() and where in path.read_text())
    run.cancel()
    held.cancelled = True
    node.gate._outcomes.stop(held)
    node.work(until=lambda: not node.gate.held())
    # A body that had begun before its stop would have added to the text.
    assert (states(run)[-1], path.read_text()) == (state, where)
    assert _is_still_the_child(node, held.request.worker_pid)


def test_a_plain_task_has_its_soft_time_limit(node: PreforkNode) -> None:
    """As in Celery; and an unrequested signal does nothing."""
    current_app.send_task(nap.name, (30,), queue="jobs", soft_time_limit=1.0)
    node.start()
    node.work(until=lambda: node.child.job)
    job = node.child.job
    os.kill(node.child.pid, signal.SIGUSR1)
    turns_left = iter(range(10))
    node.work(until=lambda: next(turns_left, None) is None)
    assert not job.ready()
    node.work(until=job.ready)
