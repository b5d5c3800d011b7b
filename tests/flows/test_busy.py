"""With every slot taken by long runs, the system's own work still happens on time."""

from datetime import timedelta
from typing import Any

import pytest
import redis

from jobs import submit, submit_many
from jobs.core.sql import now
from jobs.core.states import State
from tests.flows.processes import QUICK, Processes
from tests.flows.world import keys_with, make_owner, outcomes, reached
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

LONG = {"seconds": 60}


def test_promotion_rescue_and_sweep_act_on_time(processes: Processes, broker: redis.Redis) -> None:
    """Due runs are queued, a killed worker's runs taken back, and lost hints published."""
    processes.start_worker("busy", slots=2)
    doomed = processes.start_worker("doomed", slots=2)
    processes.start_system_and_beat()
    long = submit_many("tests.sleep", [LONG] * 6, owner="acme")
    running = long.runs.filter(state=State.RUNNING)
    wait_for(lambda: running.count() == 4, seconds=40, what="every slot to be taken")

    soon = [submit("tests.add", x=n, y=1, owner="acme", countdown=0.5) for n in range(10)]
    for run in [reached(run, State.QUEUED, seconds=10) for run in soon]:
        queued_at = run.moves[-1][1]
        assert run.due_at <= queued_at < run.due_at + timedelta(seconds=2)

    waiting = [str(run.id) for run in soon]
    broker.flushall()
    wait_for(lambda: keys_with(broker, waiting), seconds=5, what="hints after the flush")

    lost = list(running.filter(worker__hostname__startswith="doomed"))
    assert len(lost) == 2
    killed_at = now()
    doomed.kill()
    for run in lost:
        again = reached(run, State.RETRYING, State.QUEUED, seconds=10)
        taken_back_at = next(at for state, at, _ in again.moves if state == State.RETRYING)
        assert taken_back_at - killed_at < timedelta(seconds=QUICK["LEASE_SECONDS"] + 3)
        assert outcomes(again) == ["worker lost"]
    assert long.progress[State.RUNNING] == 2


def test_a_short_run_does_not_wait_for_a_long_one(processes: Processes, verdict: Any) -> None:
    """A worker takes no more than its slots: other runs stay for another worker."""
    make_owner("globex")
    processes.start_worker("one", slots=1)
    long = reached(submit("tests.sleep", seconds=3, owner="acme"), State.RUNNING, seconds=40)
    short = submit("tests.add", x=1, y=2, owner="globex")
    processes.start_worker("two", slots=1)
    short = reached(short, State.SUCCEEDED, seconds=40)
    long = reached(long, State.SUCCEEDED)
    verdict(long, short)
