"""A worker without file descriptors."""

import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from jobs import submit
from jobs.core.states import State
from jobs.management.stack.stack import StackError
from jobs.models import Worker
from tests.flows.processes import Process, Processes
from tests.flows.world import ended, outcomes, reached
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

NO_FREE_ONE = 10
"""A limit below the descriptors that each worker has open."""


def start(processes: Processes, **environ: str) -> Process:
    tasks = "tests.tasks,tests.flows.tasks,tests.flows.scarce"
    worker = processes.start_worker("one", 2, FAIRSHIFT_TASKS=tasks, **environ)
    worker.ready()
    # From its own thread, which now has its connection to the database.
    first = Worker.objects.latest("started_at")
    later = Worker.objects.filter(id=first.id, heartbeat_at__gt=first.heartbeat_at)
    wait_for(later.exists, what="the second heartbeat")
    return worker


def limit(worker: Process, files: int | None) -> None:
    """Let the worker's main process open no file past this number; None for as many as before."""
    _, hard = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (files or hard, hard))


def lose_children(worker: Process) -> None:
    for pid in worker.children():
        os.kill(pid, signal.SIGKILL)


def test_a_worker_goes_on_without_file_descriptors(
    processes: Processes, verdict: Any, tmp_path: Path
) -> None:
    """What runs ends well, and more runs after it, in the processes that the worker has."""
    worker = start(processes)
    pid, gate = worker.pid, tmp_path / "gate"
    held = submit("flows.hold", path=str(gate), owner="acme")
    reached(held, State.RUNNING)
    limit(worker, NO_FREE_ONE)
    # The checks of each second pass while these run.
    others = [submit("tests.record", n=n, seconds=1.5, owner="acme") for n in range(3)]
    for run in others:
        assert outcomes(ended(run)) == ["succeeded"]
    gate.touch()
    assert outcomes(ended(held)) == ["succeeded"]
    assert worker.pid == pid, "the same worker"
    verdict(held, *others)


def test_processes_are_created_when_there_are_file_descriptors_again(
    processes: Processes, verdict: Any
) -> None:
    """Until then the worker has a line in its log, and waits."""
    worker = start(processes)
    pid = worker.pid
    limit(worker, NO_FREE_ONE)
    lose_children(worker)
    said = "no process could be created for the pool"
    wait_for(lambda: said in worker.log.read_text(), seconds=20, what="the line in the log")
    limit(worker, None)
    run = ended(submit("tests.record", n=1, owner="acme"))
    assert outcomes(run)[-1] == "succeeded"
    assert worker.pid == pid and len(worker.children()) == 2
    verdict(run)


def test_a_worker_that_cannot_go_on_ends_with_an_error(processes: Processes) -> None:
    """A supervisor starts it again: its status is not that of a success."""
    worker = start(processes, NO_CHILD_SECONDS="1")
    limit(worker, NO_FREE_ONE)
    lose_children(worker)
    wait_for(lambda: not worker.is_alive, seconds=30, what="the worker's end")
    with pytest.raises(StackError, match="ended with 1"):
        worker.stack.watch()
