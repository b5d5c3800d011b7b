"""A worker between two numbers of slots: Celery's `--autoscale` with durable runs."""

from typing import Any

import pytest

from jobs import submit_many
from jobs.models import Owner
from tests.flows.kept import drained
from tests.flows.processes import Process, Processes
from tests.waiting import wait_for

MOST, LEAST, RUNS = 3, 1, 12


def _children(worker: Process) -> int:
    return len(worker.children())


@pytest.mark.proof
def test_a_worker_grows_with_its_backlog_and_shrinks(
    processes: Processes, owner: Owner, verdict: Any
) -> None:
    """It has as many processes as it has runs, between the two numbers; no run starts twice."""
    options = [f"--autoscale={MOST},{LEAST}"]
    worker = processes.start_worker("scaled", 1, options=options, AUTOSCALE_KEEPALIVE="2")
    processes.ready()
    assert _children(worker) == LEAST
    calls = [{"n": n, "seconds": 0.5} for n in range(RUNS)]
    submission = submit_many("tests.record", calls, owner=owner)
    wait_for(lambda: _children(worker) == MOST, seconds=30, what="the pool to grow")
    drained()
    wait_for(lambda: _children(worker) == LEAST, seconds=60, what="the pool to shrink")
    figures = verdict(submission).figures
    assert figures["starts"] == figures["runs"] == RUNS
