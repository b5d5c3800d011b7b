"""A worker that stops, warmly or at once, neither cancels nor wastes its runs."""

import signal
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from jobs import submit
from jobs.core.states import State
from jobs.management.stack.programs import job_worker
from tests.flows.processes import ALONE, Processes, database_url
from tests.flows.world import bodies, ended, make_owner, outcomes, reached, states
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

# A start waits for the holder of that lock.
SLOW_STARTS = """
CREATE FUNCTION slow_start() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END';
CREATE TRIGGER slow_start BEFORE UPDATE ON jobs_run FOR EACH ROW
    WHEN (NEW.state = 'running' AND OLD.state = 'admitted') EXECUTE FUNCTION slow_start();
"""


def test_what_a_cold_stop_ends_runs_again(processes: Processes, verdict: Any) -> None:
    """It is not cancelled: it runs on another worker, also when it retries other errors only."""
    cold = processes.start_worker("cold", slots=2)
    processes.start_system_and_beat()
    policies = [{}, {"retry_on": ["ConnectionError"]}]
    submitted = [
        submit("flows.misbehave", way="hang", times=1, n=7, owner="acme", **policy)
        for policy in policies
    ]
    for run in submitted:
        reached(run, State.RUNNING, seconds=40)
    processes.tasks.disturb(cold.pid, how="killed")
    cold.signal(signal.SIGQUIT)
    wait_for(lambda: not cold.is_alive, what="the worker's end")
    processes.start_worker("next", slots=2)
    runs = [ended(run, seconds=40) for run in submitted]
    assert [run.state for run in runs] == [State.SUCCEEDED] * 2
    assert all(outcomes(run)[1:] == ["succeeded"] for run in runs)
    verdict(*runs)


def test_an_admission_that_is_answered_while_the_worker_stops_is_given_back(
    processes: Processes, verdict: Any
) -> None:
    """Its one attempt is not spent: it starts when there is a worker again."""
    make_owner("acme", max_running=1)
    program = job_worker("slow", slots=1)
    command = ["tests.flows.slow_stop" if word == "config" else word for word in program.command]
    slow = processes.start(replace(program, command=command), options=ALONE)
    slow.ready()
    with psycopg.connect(database_url(), autocommit=True) as other:
        # The statement of an owner with a cap waits for its room.
        other.execute("SELECT pg_advisory_lock(1718, hashtext('acme'))")
        run = submit("tests.record", n=1, owner="acme", max_attempts=1)
        wait_for(lambda: _waiting(other), what="the admission to wait")
        slow.signal(signal.SIGTERM)
        wait_for(lambda: "stops slowly" in slow.log_end(), what="the consumer to stop")
    wait_for(lambda: not slow.is_alive, what="the worker's end")
    run.refresh_from_db()
    assert (states(run), run.attempt_count) == (["queued", "admitted", "queued"], 0)
    assert bodies(processes.tasks, run) == []
    processes.start_worker("next", slots=1)
    run = ended(run, seconds=40)
    assert outcomes(run)[-1] == "succeeded"
    verdict(run)


def test_a_start_that_is_being_recorded_while_the_worker_stops_is_made(
    processes: Processes, verdict: Any
) -> None:
    """It was too late to give it back, and it has but one attempt."""
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.execute(SLOW_STARTS)
        try:
            other.execute("SELECT pg_advisory_lock(4711)")
            worker = processes.start_worker("one", slots=1)
            run = submit("tests.record", n=1, owner="acme", max_attempts=1)
            wait_for(lambda: _waiting(other), seconds=40, what="the start to be recorded")
            assert bodies(processes.tasks, run) == []
            worker.signal(signal.SIGTERM)
            wait_for(lambda: "Warm shutdown" in worker.log_end(), what="the worker to stop")
            other.execute("SELECT pg_advisory_unlock(4711)")
            wait_for(lambda: not worker.is_alive, what="the worker's end")
        finally:
            other.execute("DROP FUNCTION slow_start CASCADE")
    run.refresh_from_db()
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
    verdict(run)


def _waiting(other: psycopg.Connection[Any]) -> bool:
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    return bool(other.execute(query).fetchall()[0][0])
