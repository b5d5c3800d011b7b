"""Tasks that a worker does not know: rolling deploys, and tasks that were renamed or removed."""

import time
from typing import Any

import pytest

from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run
from tests.flows.processes import Process, Processes
from tests.flows.world import bodies, ended
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

OLD = {"FAIRSHIFT_TASKS": "tests.tasks"}
TASK = "flows.whose"
AT_ONCE_SECONDS = 10.0


def started_within(run: Run, since: float) -> Run:
    """Return the run once it has ended; fails when that takes too long."""
    run = ended(run)
    took = time.time() - since
    assert run.state == State.SUCCEEDED, run.history
    assert took < AT_ONCE_SECONDS, (took, run.history)
    return run


def log_of(process: Process) -> str:
    return process.log.read_text()


def test_a_task_that_only_newer_workers_know(
    processes: Processes, owner: Owner, verdict: Any
) -> None:
    """Its runs wait without a traceback, and start as soon as such a worker is there."""
    old = processes.start_worker("old", 2, **OLD)
    processes.ready()
    waiting = submit(TASK, owner=owner)
    wait_for(lambda: Run.objects.get(id=waiting.id).blocked_by == "task", what="the old worker")
    assert waiting.why_waiting() == f"No worker of queue 'jobs' knows task {TASK}."
    known = submit("tests.add", x=1, y=2, owner=owner)
    assert ended(known).state == State.SUCCEEDED

    processes.start_worker("new", 2).ready()
    since = time.time()
    waiting = started_within(waiting, since)
    # The old worker takes some of these first.
    later = []
    for _ in range(10):
        since = time.time()
        later.append(started_within(submit(TASK, owner=owner), since))
    assert "Traceback" not in log_of(old), log_of(old)
    assert log_of(old).count("no such task here") == 1
    assert all(len(bodies(processes.tasks, run)) == 2 for run in (waiting, *later))
    verdict(waiting, known, *later)
