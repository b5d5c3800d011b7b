"""Pools without child processes: the journey holds; hard limits and kills do not exist there."""

from typing import Any

import pytest

from jobs import submit, submit_many
from jobs.core.states import State
from tests.flows.processes import QUICK, Processes
from tests.flows.world import bodies, ended, outcomes, reached, states

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_the_journey_on_other_pools(processes: Processes, verdict: Any, pool: str) -> None:
    """Outcomes, retries and cancels are recorded; a long run keeps its lease; limits do not end it.

    A cancelled run that cannot be stopped ends by itself, and its success then stands.
    """
    allowed = {"FAIRSHIFT_ALLOW_OTHER_POOLS": "on"}
    worker = processes.start_worker(pool, 2, options=["--pool", pool], **allowed)
    processes.start_system_and_beat()
    many = submit_many("tests.record", [{"n": n} for n in range(30)], owner="acme")
    failed = submit("flows.misbehave", way="system_exit", owner="acme", max_attempts=2)
    kept = submit("flows.misbehave", way="set", owner="acme", max_attempts=1)
    retried = submit("tests.fail", times=1, owner="acme")
    dropped = submit("tests.record", n=1, owner="acme", countdown=60)
    dropped.cancel()
    many.wait(timeout=300)
    assert many.progress[State.SUCCEEDED] == 30
    failed, kept, retried = ended(failed), ended(kept), ended(retried)
    assert (failed.error_type, outcomes(failed)) == ("SystemExit", ["retrying", "failed"])
    assert (kept.error_type, outcomes(kept)) == ("ResultError", ["failed"])
    assert outcomes(retried) == ["retrying", "succeeded"]

    seconds = QUICK["LEASE_SECONDS"] + 1
    long = submit("tests.sleep", seconds=seconds, owner="acme", time_limit_seconds=1)
    long = reached(long, State.RUNNING)
    long.cancel()
    long = ended(long)
    assert states(long) == ["queued", "admitted", "running", "cancelling", "succeeded"]
    assert len(bodies(processes.tasks, long)) == 2, "one start, one end"
    assert worker.is_alive
    verdict(many, failed, kept, retried, dropped, long)
