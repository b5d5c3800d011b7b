"""Faults of one run end that run at most, once, and leave other runs alone."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from celery import current_app
from celery.result import AsyncResult
from django.db import connection

from fleet import HEADER
from fleet.worker.io_thread import START_SECONDS
from jobs import submit
from jobs.core.conf import DEFAULTS
from jobs.core.states import State
from jobs.models import Run, Worker
from tests.flows.processes import QUICK, Layout, Processes, database_url
from tests.flows.tasks import told
from tests.flows.world import bodies, ended, outcomes, reached, start_count
from tests.waiting import stays_false, wait_for

pytestmark = pytest.mark.proof

LIMITS = {"soft_time_limit_seconds": 0.2, "time_limit_seconds": 0.6}

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


def test_a_hard_limit_is_told_once(stack: Processes, verdict: Any) -> None:
    """The terminated child reports nothing: one outcome, one errback."""
    runs = [_hang(max_attempts=1, link_error=told.si(n)) for n in range(4)]
    runs = [reached(run, State.FAILED) for run in runs]
    wait_for(lambda: start_count(stack.tasks, task="flows.told") >= 4, what="four errbacks")
    assert {run.error_type for run in runs} == {"TimeLimitExceeded"}
    assert {tuple(outcomes(run)) for run in runs} == {("time limit",)}
    assert {AsyncResult(str(run.id)).state for run in runs} == {"FAILURE"}
    # A second call of an errback would have passed through the queue before this one.
    after = ended(submit("tests.add", x=1, y=2, owner="acme"))
    assert start_count(stack.tasks, task="flows.told") == 4
    verdict(*runs, after)


def test_a_hard_limit_that_is_retried_is_told_to_nobody(stack: Processes, verdict: Any) -> None:
    """No errback is called and no failure stored while the run has another attempt."""
    submitted = [
        _hang(retry_on=["TimeLimitExceeded"], backoff_seconds=60.0, backoff_cap_seconds=60.0)
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


def test_a_run_does_not_stay_with_a_process_that_is_stopped(processes: Processes) -> None:
    """Until the process has read it, the run is not `running`; the process is killed, and it runs.

    An attempt that has not begun does not count. Its start deadline has passed, so the next
    process leaves it to promotion.
    """
    processes.start_system()
    processes.start_beat()
    worker = processes.start_worker(slots=1)
    # A worker is ready before its child, which is stopped after it has booted.
    ended(submit("tests.record", 0, owner="acme"))
    [child] = worker.children()
    os.kill(child, signal.SIGSTOP)
    run = reached(submit("tests.record", 1, owner="acme", max_attempts=2), State.ADMITTED)
    assert stays_false(
        lambda: Run.objects.get(id=run.id).state == State.RUNNING, seconds=10 * START_SECONDS
    )
    run = ended(run, seconds=60)
    assert (run.state, run.attempt_count) == (State.SUCCEEDED, 1)
    assert f"process {child} of the pool has not read its job" in worker.log.read_text()


def test_a_payload_that_cannot_be_read_fails_its_run_alone(stack: Processes) -> None:
    """With an error that says so; the worker lives and continues."""
    worker = stack.started[0].pid
    bad = [submit("tests.add", x=n, y=1, owner="acme", countdown=0.5) for n in range(3)]
    payloads = [b"no json", b"\xff\x00", b'{"not": "a body"}']
    for run, payload in zip(bad, payloads, strict=True):
        Run.objects.filter(id=run.id).update(payload=payload)
    good = submit("tests.add", x=1, y=2, owner="acme", countdown=0.5)
    runs = [ended(run) for run in (*bad, good)]
    assert [run.state for run in runs] == [State.FAILED] * 3 + [State.SUCCEEDED]
    assert all(run.error_type and run.error_message for run in runs[:3])
    assert [len(bodies(stack.tasks, run)) for run in runs] == [0, 0, 0, 2]
    assert stack.started[0].pid == worker


def test_a_row_that_somebody_holds_keeps_nobody_else(stack: Processes, verdict: Any) -> None:
    """Its neighbours are recorded and new runs admitted; it is recorded when it is free."""
    # Long enough to be held before its end, on however busy a machine.
    held = reached(submit("tests.record", n=0, seconds=3, owner="acme"), State.RUNNING)
    with _holding(held):
        other = ended(submit("tests.record", n=1, seconds=0.5, owner="acme"), seconds=4)
        later = ended(submit("tests.record", n=3, owner="acme"), seconds=4)
        wait_for(lambda: len(bodies(stack.tasks, held)) == 2, what="the end of the held run's body")
        # Longer than a lease: its worker lives, so rescue leaves it alone.
        _beats(times=int(QUICK["LEASE_SECONDS"] / QUICK["HEARTBEAT_SECONDS"]) + 2)
        assert Run.objects.get(id=held.id).state == State.RUNNING
    held = ended(held)
    assert [outcomes(run) for run in (held, other, later)] == [["succeeded"]] * 3
    verdict(held, other, later)


def _hang(**options: Any) -> Run:
    return submit(
        "flows.misbehave",
        way="hang_on",
        owner="acme",
        ignore_result=False,
        **{"link_error": told.si("retried"), **LIMITS, **options},
    )


@contextmanager
def _holding(run: Run) -> Iterator[None]:
    """Lock the row of a run, as an operator who forgot to commit."""
    with psycopg.connect(database_url()) as operator:
        operator.execute("SELECT FROM jobs_run WHERE id = %s FOR UPDATE", [run.id])
        yield
        operator.rollback()


def _beats(*, times: int) -> None:
    """Wait until the worker has sent this many heartbeats."""
    for _ in range(times):
        last = _heartbeat()
        wait_for(lambda last=last: _heartbeat() > last, what="a heartbeat")  # type: ignore[misc]


def _heartbeat() -> Any:
    assert connection.in_atomic_block is False
    return Worker.objects.get(hostname__startswith="shared-0", stopped_at=None).heartbeat_at
