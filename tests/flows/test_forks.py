"""A task that forks, and whose copy returns from its body too: the copy ends there."""

from typing import Any

import pytest
from celery import current_app
from celery.result import AsyncResult

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import Submission
from tests.flows.processes import Layout, Processes
from tests.flows.world import bodies, ended, outcomes
from tests.judge import read_task_events
from tests.processes import is_running
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

JOBS = 300
LAYOUT = Layout(1, 1, lease=30)


def _run_once_each_in_the_pool_s_process(stack: Processes) -> Submission:
    """Submit runs; return them when each has begun once, in the one process of the pool."""
    after = submit_many("tests.record", [{"n": n} for n in range(JOBS)], owner="acme")
    assert after.wait(timeout=300)[State.SUCCEEDED] == JOBS
    ids = {str(run.id) for run in after.runs.all()}
    events = read_task_events(stack.tasks.path)
    pids = [event.pid for event in events if event.event == "start" and event.run in ids]
    assert len(pids) == JOBS and set(pids) <= stack.started[0].children()
    return after


@pytest.mark.parametrize("copy_raises", [False, True])
def test_a_copy_of_a_durable_run_ends_with_the_body(
    stack: Processes, verdict: Any, *, copy_raises: bool
) -> None:
    """It records nothing and takes no job: each of the next runs once, in the pool's process."""
    forked = ended(submit("flows.fork_on", copy_raises=copy_raises, owner="acme"))
    after = _run_once_each_in_the_pool_s_process(stack)
    assert (outcomes(forked), forked.result_value > 0) == (["succeeded"], True)
    wait_for(lambda: not is_running(forked.result_value), what="the copy's end")
    assert len(bodies(stack.tasks, forked)) == 2, "one start, one end"
    verdict(forked, after)


def test_a_copy_of_a_plain_task_ends_with_the_body(stack: Processes, verdict: Any) -> None:
    """It stores no result and takes no job."""
    called = current_app.send_task("flows.fork_on", queue="jobs", ignore_result=False)
    copy = AsyncResult(called.id).get(timeout=300)
    after = _run_once_each_in_the_pool_s_process(stack)
    wait_for(lambda: not is_running(copy), what="the copy's end")
    assert AsyncResult(called.id).get(timeout=300) == copy > 0
    verdict(after)
