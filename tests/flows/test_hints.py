"""Hints without meaning: no message starts a run that its row forbids, or stops a worker."""

import uuid
from typing import Any

from celery import current_app

from fleet import HEADER, Hint
from jobs import submit
from jobs.core.states import State
from jobs.models import Run, Submission
from jobs.runs.dispatch import broker as hint_broker
from tests.flows.processes import Processes
from tests.flows.world import bodies, ended, outcomes
from tests.judge import read_task_events
from tests.waiting import wait_for


def _publish(run_id: object, *, task: str = "tests.add", times: int = 1, priority: int = 5) -> None:
    hint = Hint(run_id=str(run_id), task=task, queue="jobs", owner="acme", priority=priority)
    hint_broker().publish([hint] * times, timeout=5)


def _passed_through(verdict: Any, stack: Processes, *runs: Run | Submission) -> None:
    """Have ordinary runs pass behind the hints, through the same workers as before."""
    pids = [process.pid for process in stack.started]
    after = [submit("tests.record", n=n, seconds=0.02, owner="acme") for n in range(8)]
    after = [ended(run) for run in after]
    assert {run.state for run in after} == {State.SUCCEEDED}
    verdict(*runs, *after)
    assert [process.pid for process in stack.started] == pids


def test_a_hint_of_no_run_is_dropped(stack: Processes, verdict: Any) -> None:
    """An id that is unknown, or is no id at all, starts nothing."""
    for run_id in (uuid.uuid4(), "not-an-id", "", "0" * 5000, "\N{SNOWMAN}"):
        _publish(run_id)
    _passed_through(verdict, stack)


def test_a_hint_of_an_ended_run_is_dropped(stack: Processes, verdict: Any) -> None:
    """Succeeded, failed and cancelled runs do not start again."""
    succeeded = submit("tests.add", x=1, y=2, owner="acme")
    failed = submit("tests.fail", times=9, owner="acme", max_attempts=1)
    cancelled = submit("tests.add", x=1, y=2, owner="acme", countdown=60)
    cancelled.cancel()
    runs = [ended(run) for run in (succeeded, failed, cancelled)]
    before = [run.history for run in runs]
    for run in runs:
        _publish(run.id, task=run.task, times=3)
    _passed_through(verdict, stack, *runs)
    assert [ended(run).history for run in runs] == before


def test_a_hint_that_comes_fifty_times_starts_one_run(stack: Processes, verdict: Any) -> None:
    """The row is admitted once, however many workers ask."""
    run = submit("tests.record", n=1, seconds=0.3, owner="acme")
    _publish(run.id, task="tests.record", times=50)
    run = ended(run)
    _publish(run.id, task="tests.record", times=10)
    _passed_through(verdict, stack, run)
    assert outcomes(run) == ["succeeded"]
    assert len(bodies(stack.tasks, run)) == 2, "one start, one end"


def test_an_offered_task_runs_only_with_a_row(stack: Processes, verdict: Any) -> None:
    """A bare message, or one that claims to be admitted, does not start it; a row does."""
    current_app.send_task("flows.offered", kwargs={"kind": "no row"})
    forged = {HEADER: {"owner": "acme", "submission": None, "run": "x", "token": 1}}
    current_app.send_task("flows.offered", kwargs={"kind": "no row"}, headers=forged)
    run = ended(submit("flows.offered", kind="row", owner="acme"))
    assert run.result_value == "row"
    wait_for(lambda: "it runs only with a row" in stack.log_ends())
    _passed_through(verdict, stack, run)
    plain = [event for event in read_task_events(stack.tasks.path) if event.run is None]
    assert plain == []


def test_what_is_no_task_message_stops_nobody(stack: Processes, verdict: Any) -> None:
    """Unknown tasks and bodies that are no arguments are refused by name in the log."""
    with current_app.producer_or_acquire() as producer:
        for headers in ({}, {"task": "no.such", "id": str(uuid.uuid4())}):
            producer.publish(
                {"not": "a task"}, routing_key="jobs", headers=headers, serializer="json"
            )
    _passed_through(verdict, stack)
