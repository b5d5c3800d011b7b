"""docs/pools.md: what it says of the threads and the solo pool, on real workers."""

from typing import Any

import pytest

from jobs import submit, submit_many
from jobs.states import State
from tests.flows.processes import QUICK, Layout, Processes
from tests.flows.world import ended, outcomes, reached, states


@pytest.fixture(
    scope="module",
    params=[
        Layout(workers=1, slots=4, options=("--pool", "threads")),
        Layout(workers=1, slots=1, options=("--pool", "solo")),
    ],
    ids=["threads", "solo"],
)
def layout(request: pytest.FixtureRequest) -> Layout:
    layout: Layout = request.param
    return layout


def test_runs_are_admitted_retried_and_recorded(stack: Processes, verdict: Any) -> None:
    """Each attempt starts once, with its row's arguments; what fails has its attempts."""
    failed = submit("tests.fail", times=9, owner="acme", max_attempts=2)
    submission = submit_many("tests.record", [{"n": n} for n in range(8)], owner="acme")
    submission.wait(timeout=20)
    runs = list(submission.runs.order_by("id"))
    assert [run.result_value["n"] for run in runs] == list(range(8))
    assert {tuple(states(run)) for run in runs} == {("queued", "admitted", "running", "succeeded")}
    failed = ended(failed)
    assert (failed.state, outcomes(failed)) == (State.FAILED, ["retrying", "failed"])
    verdict(submission, failed)


def test_a_running_task_cannot_be_ended(stack: Processes, verdict: Any) -> None:
    """Neither a time limit nor a cancel reaches it, and after two leases it is still the one."""
    seconds = 2 * QUICK["LEASE_SECONDS"]
    limits = {"soft_time_limit_seconds": 0.3, "time_limit_seconds": 0.6}
    run = submit("tests.sleep", seconds=seconds, owner="acme", **limits)
    run = reached(run, State.RUNNING)
    run.cancel()
    assert run.state == State.CANCELLING
    run = ended(run)
    assert (run.state, run.token, run.result_value) == (State.SUCCEEDED, 1, {"token": 1})
    verdict(run)
