"""A worker without a process or a queue takes no run, does not count, and keeps its runs."""

from socket import gethostname
from typing import Any

import pytest
from celery import current_app

from jobs import submit
from jobs.checks.database import check_deployed_database
from jobs.core.states import State
from jobs.models import Owner, Run, Worker
from tests.control import await_heard
from tests.flows.processes import QUICK, Layout, Processes
from tests.flows.world import ended, outcomes, reached
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

WORKER = f"shared-0@{gethostname()}"
OPENED = "pool_shrink,pool_grow,cancel_consumer,add_consumer"
# One worker for all scenes: the last one leaves it with one process.
LAYOUT = Layout(workers=1, slots=2, environ={"FAIRSHIFT_REMOTE_COMMANDS": OPENED})
LONG = 2 * float(QUICK["LEASE_SECONDS"])


def order(command: str, **arguments: Any) -> None:
    """Send the worker a command; fails when it is refused."""
    await_heard(current_app, WORKER)
    [reply] = current_app.control.broadcast(
        command, arguments=arguments, destination=[WORKER], reply=True, timeout=10, limit=1
    )
    assert "ok" in reply[WORKER], reply


def row() -> Worker:
    return Worker.objects.get(hostname=WORKER)


def is_idle() -> bool:
    return Worker.objects.idle().filter(hostname=WORKER).exists()


def why(run: Run) -> str:
    return Run.objects.get(id=run.id).why_waiting()


def warnings() -> list[str]:
    return [found.msg for found in check_deployed_database() if found.id == "fairshift.W109"]


def test_a_worker_without_a_queue(stack: Processes, owner: Owner, verdict: Any) -> None:
    """Its run continues beyond a lease and ends once; later runs wait."""
    held = reached(submit("tests.record", n=1, seconds=LONG, owner=owner), State.RUNNING)
    order("cancel_consumer", queue="jobs")
    wait_for(is_idle, what="the worker not to count")
    waits = submit("tests.add", x=1, y=2, owner=owner)
    assert why(waits) == f"No worker takes from queue 'jobs': worker {WORKER} consumes no queue."
    assert any(f"Worker {WORKER} consumes no queue" in text for text in warnings())
    assert outcomes(ended(held)) == ["succeeded"]
    assert Run.objects.get(id=waits.id).state == State.QUEUED
    order("add_consumer", queue="jobs")
    assert outcomes(ended(waits)) == ["succeeded"]
    wait_for(lambda: not is_idle(), what="the worker to count again")
    assert (row().slots, row().queues) == (2, ["jobs"])
    verdict(held, waits)


def test_a_worker_without_a_process(stack: Processes, owner: Owner, verdict: Any) -> None:
    """It takes nothing, which others do then; with a process again, it takes runs as before."""
    order("pool_shrink", n=row().slots)
    wait_for(is_idle, what="the worker not to count")
    assert row() not in Worker.objects.alive()
    run = submit("tests.add", x=1, y=2, owner=owner)
    assert why(run) == f"No worker takes from queue 'jobs': worker {WORKER} has no process."
    assert any(f"Worker {WORKER} has no process" in text for text in warnings())
    beats_on(LONG)
    assert Run.objects.get(id=run.id).state == State.QUEUED, "not even admitted"
    other = stack.start_worker("other", slots=1)
    stack.ready()
    assert outcomes(ended(run)) == ["succeeded"]
    other.stop()
    later = submit("tests.add", x=3, y=4, owner=owner)
    order("pool_grow", n=1)
    assert ended(later).result_value == 7
    wait_for(lambda: not is_idle(), what="the worker to count again")
    assert (row().slots, row().queues) == (1, ["jobs"])
    verdict(run, later)


def beats_on(seconds: float) -> None:
    """Wait until the worker has sent heartbeats for this long."""
    first = row().heartbeat_at
    wait_for(lambda: (row().heartbeat_at - first).total_seconds() > seconds, what="more heartbeats")
