"""Faults of one run end that run at most, once, and leave other runs alone."""

import os
from contextlib import suppress
from typing import Any

import pytest
from celery import current_app
from celery.result import AsyncResult

from fleet import HEADER
from jobs import submit
from jobs.core.conf import DEFAULTS
from jobs.core.states import State
from tests.flows.processes import Layout, Processes
from tests.flows.tasks import told
from tests.flows.world import bodies, ended, outcomes, reached, start_count
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


# One worker, which receives every `revoke` and follows it.
LAYOUT = Layout(1, 4, environ={"FAIRSHIFT_REMOTE_COMMANDS": "revoke"})


def test_a_worker_comes_before_its_children(stack: Processes) -> None:
    """On scarce processors the worker feeds them, and its heartbeats renew its leases."""
    [worker] = [one for one in stack.started if one.name.startswith("shared")]
    own = os.getpriority(os.PRIO_PROCESS, worker.pid)
    wanted = [own + DEFAULTS["CHILD_NICENESS"]] * 4

    def found() -> list[int]:
        return [os.getpriority(os.PRIO_PROCESS, pid) for pid in worker.children()]

    # A worker is ready before the last of its children has begun.
    with suppress(AssertionError):
        wait_for(lambda: found() == wanted)
    assert found() == wanted


def test_a_hard_limit_that_is_retried_is_told_to_nobody(stack: Processes, verdict: Any) -> None:
    """No errback is called and no failure stored while the run has another attempt."""
    submitted = [
        submit(
            "flows.misbehave",
            way="hang_on",
            owner="acme",
            ignore_result=False,
            link_error=told.si("retried"),
            soft_time_limit_seconds=0.2,
            time_limit_seconds=0.6,
            retry_on=["TimeLimitExceeded"],
            backoff_seconds=60.0,
            backoff_cap_seconds=60.0,
        )
        for _ in range(4)
    ]
    runs = [reached(run, State.RETRYING, State.FAILED) for run in submitted]
    assert [outcomes(run) for run in runs] == [["time limit"]] * 4
    after = ended(submit("tests.add", x=1, y=2, owner="acme"))
    assert start_count(stack.tasks, task="flows.told") == 0
    assert not {AsyncResult(str(run.id)).state for run in runs} & {"FAILURE", "REVOKED"}
    assert {run.state for run in runs} == {State.RETRYING}
    for run in runs:
        run.cancel()
    verdict(*runs, after)


def test_only_its_row_cancels_a_run(stack: Processes, verdict: Any) -> None:
    """A run that Celery revoked before it was due, or that a forged hint calls expired, runs."""
    revoked = submit("tests.add", x=1, y=2, owner="acme", countdown=3.0)
    forged = submit("tests.add", x=3, y=4, owner="acme", countdown=3.0)
    [heard] = current_app.control.revoke(str(revoked.id), reply=True, timeout=5, limit=1)
    assert all("ok" in answer for answer in heard.values()), "a refused order would prove nothing"
    current_app.send_task(
        "tests.add",
        task_id=str(forged.id),
        queue="jobs",
        expires=-5,
        headers={HEADER: {"owner": "acme", "submission": None, "run": str(forged.id), "token": 1}},
    )
    runs = [ended(run) for run in (revoked, forged)]
    assert [run.result_value for run in runs] == [3, 7]
    verdict(*runs)


def test_a_running_task_that_celery_terminates_is_cancelled(stack: Processes, verdict: Any) -> None:
    """By Flower, or `celery control`: the row says so, and it is not tried again."""
    run = reached(submit("tests.sleep", seconds=30, owner="acme"), State.RUNNING)
    current_app.control.revoke(str(run.id), terminate=True)
    run = ended(run)
    assert (run.state, outcomes(run)) == (State.CANCELLED, ["cancelled"])
    assert len(bodies(stack.tasks, run)) <= 2
    verdict(run)
