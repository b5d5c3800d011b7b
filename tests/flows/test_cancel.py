"""Cancel: waiting runs never start, running ones are told and then stopped."""

import random
from typing import Any

import pytest
import redis

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import Run
from jobs.runs.cancellation import cancel_runs
from tests.flows.processes import Processes
from tests.flows.world import bodies, ended, outcomes, reached, states


def _body_ended(stack: Processes, run: Run) -> str | None:
    """Return how the run's only body ended; None when it was killed before its end."""
    _start, *end = bodies(stack.tasks, run)
    return end[0].outcome if end else None


def test_a_running_task_is_told(stack: Processes, verdict: Any) -> None:
    """Within a heartbeat it sees SoftTimeLimitExceeded, ends, and is cancelled."""
    run = reached(submit("tests.sleep", seconds=30, owner="acme"), State.RUNNING)
    assert run.cancel(reason="wrong site")
    assert run.state == State.CANCELLING
    run = ended(run)
    assert states(run) == ["queued", "admitted", "running", "cancelling", "cancelled"]
    assert run.moves[-2][2] == "wrong site"
    assert outcomes(run) == ["cancelled"]
    assert _body_ended(stack, run) == "raised SoftTimeLimitExceeded"
    assert (run.moves[-1][1] - run.moves[-2][1]).total_seconds() < 25
    verdict(run)


def test_a_task_that_does_not_listen_is_killed(stack: Processes, verdict: Any) -> None:
    """After the grace its process ends, and the next run has another one."""
    submitted = submit("tests.sleep", seconds=30, ignore_soft=True, owner="acme")
    run = reached(submitted, State.RUNNING)
    run.cancel()
    run = ended(run)
    assert (run.state, outcomes(run)) == (State.CANCELLED, ["cancelled"])
    assert _body_ended(stack, run) is None
    after = [ended(submit("tests.record", n=n, owner="acme")) for n in range(4)]
    verdict(run, *after)


def test_none_that_was_cancelled_before_its_admission_starts(
    stack: Processes, verdict: Any
) -> None:
    """Cancels race with four slots: a run that was never admitted has no body."""
    calls = [{"n": n, "seconds": 0.05} for n in range(300)]
    submission = submit_many("tests.record", calls, owner="acme")
    ids = list(submission.runs.order_by("id").values_list("id", flat=True))
    order = random.Random(7).sample(ids, k=len(ids))
    for start in range(0, 300, 2):
        cancel_runs(order[start : start + 2])
    submission.wait(timeout=300)
    runs = list(submission.runs.all())
    never = [run for run in runs if run.token == 0]
    assert {run.state for run in never} == {State.CANCELLED}
    assert [bodies(stack.tasks, run) for run in never] == [[]] * len(never)
    assert 0 < len(never) < 300
    print(f"{len(never)} of 300 were cancelled before their admission")
    verdict(submission)


@pytest.mark.parametrize("flushed", [pytest.param(False, marks=pytest.mark.proof), True])
def test_a_cancelled_run_does_not_come_back(
    processes: Processes, broker: redis.Redis, verdict: Any, *, flushed: bool
) -> None:
    """Neither a worker that starts later with its hint, nor a rebuilt Redis starts it."""
    cancelled = submit("tests.record", n=1, owner="acme")
    other = submit("tests.record", n=2, owner="acme")
    cancelled.cancel()
    if flushed:
        broker.flushall()
    processes.start_worker()
    processes.start_system_and_beat()
    assert ended(other, seconds=40).state == State.SUCCEEDED
    assert ended(cancelled).state == State.CANCELLED
    assert bodies(processes.tasks, cancelled) == []
    verdict(cancelled, other)
