"""A task that forks, and whose copy returns from its body too: the copy ends there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from celery.result import AsyncResult

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import Run
from tests.flows.processes import Process, Processes
from tests.flows.world import bodies, ended, outcomes
from tests.judge import TaskLog, read_task_events
from tests.waiting import wait_for

JOBS = 300


@pytest.fixture
def worker(processes: Processes, owner: Any) -> Process:
    """A worker with one process, and the system's."""
    worker = processes.start_worker("one", slots=1)
    processes.start_system()
    processes.ready()
    return worker


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _ran_once_each(log: TaskLog, runs: Sequence[Run], worker: Process) -> None:
    starts = [event for event in read_task_events(log.path) if event.event == "start"]
    ids = {str(run.id) for run in runs}
    pids = [event.pid for event in starts if event.run in ids]
    strangers = [pid for pid in pids if pid not in worker.children()]
    assert (len(pids), strangers) == (len(runs), [])


@pytest.mark.parametrize("copy_raises", [False, True])
def test_a_copy_of_a_durable_run_ends_with_the_body(
    worker: Process, processes: Processes, verdict: Any, *, copy_raises: bool
) -> None:
    """It records nothing and takes no job: each of the next runs once, in the pool's process."""
    forked = ended(submit("flows.fork_on", copy_raises=copy_raises, owner="acme"))
    after = submit_many("tests.record", [{"n": n} for n in range(JOBS)], owner="acme")
    after.wait(timeout=60)
    assert after.progress[State.SUCCEEDED] == JOBS
    _ran_once_each(processes.tasks, list(after.runs.all()), worker)
    assert (outcomes(forked), forked.result_value > 0) == (["succeeded"], True)
    wait_for(lambda: not _is_running(forked.result_value), what="the copy's end")
    assert len(bodies(processes.tasks, forked)) == 2, "one start, one end"
    verdict(forked, after)


def test_a_copy_of_a_plain_task_ends_with_the_body(
    worker: Process, processes: Processes, verdict: Any
) -> None:
    """It stores no result and takes no job."""
    called = current_app.send_task("flows.fork_on", queue="jobs", ignore_result=False)
    copy = AsyncResult(called.id).get(timeout=20)
    after = submit_many("tests.record", [{"n": n} for n in range(JOBS)], owner="acme")
    after.wait(timeout=60)
    _ran_once_each(processes.tasks, list(after.runs.all()), worker)
    wait_for(lambda: not _is_running(copy), what="the copy's end")
    assert AsyncResult(called.id).get(timeout=20) == copy > 0
    verdict(after)
