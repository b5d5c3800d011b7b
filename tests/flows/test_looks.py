"""Where is it? A worker answers with the stack of a run, whatever its process does."""

import os
import signal
from contextlib import suppress

import pytest

from jobs import submit
from jobs.core.errors import StateConflict
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Run
from jobs.runs.looks import Answer, answers_of, ask_where, unanswered
from tests.flows.processes import Layout, Processes
from tests.flows.world import ended, reached
from tests.waiting import wait_for

pytestmark = pytest.mark.proof
LAYOUT = Layout(1, 1, lease=30)


def running(way: str) -> Run:
    submitted = submit("flows.misbehave", way=way, max_attempts=1, owner="acme")
    return reached(submitted, State.RUNNING)


def answered(run: Run) -> Answer:
    """Ask until there is an answer to a question of now, and return it."""
    since = now()

    def found() -> list[Answer]:
        # A question within a second of the last one is not asked.
        ask_where(run)
        return [answer for answer in answers_of(run) if answer.asked_at > since]

    return wait_for(found, seconds=30)[0]


@pytest.mark.parametrize(
    ("way", "place"), [("hang", "_hang"), ("match", "_match"), ("read", "_read")]
)
def test_a_run_that_hangs_is_looked_into(stack: Processes, way: str, place: str) -> None:
    """In a sleep, in a call of C that holds the GIL, in a read from a socket; and it goes on."""
    run = running(way)
    for _ in range(2):
        answer = answered(run)
        frames = [line for line in answer.stack.splitlines() if "tests/flows/tasks.py" in line]
        assert answer.stack.startswith("Current thread") and frames[0].endswith(f"in {place}")
        # Who calls the task is no frame of its own.
        assert not {"celery", "billiard", "fleet"} & set(answer.stack.replace("/", " ").split())
        assert (answer.problem, answer.attempt) == ("", 1)
        assert answer.memory_bytes is not None and answer.memory_bytes > 1_000_000
        assert answer.cpu_seconds is not None and answer.cpu_seconds > 0
    assert run.state == State.RUNNING
    run.cancel()
    assert ended(run).state == State.CANCELLED


def test_a_silent_process_and_a_silent_worker_are_named(stack: Processes) -> None:
    """A stopped process writes no stack; a stopped worker does not answer."""
    run = running("hang")
    pid = answered(run).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        answer = answered(run)
        assert not answer.stack and str(pid) in answer.problem and "stopped" in answer.problem
    finally:
        os.kill(pid, signal.SIGCONT)
    assert run.worker is not None
    os.kill(run.worker.pid, signal.SIGSTOP)
    try:
        wait_for(lambda: "has not answered" in _asked(run), seconds=30)
        assert run.worker.hostname in unanswered(run)
    finally:
        os.kill(run.worker.pid, signal.SIGCONT)
    run.cancel()
    assert ended(run).state == State.CANCELLED


def _asked(run: Run) -> str:
    ask_where(run)
    return unanswered(run)


def test_a_run_that_ends_meanwhile_has_no_answer(stack: Processes) -> None:
    """The stack of the next run in its process is never shown as its own."""
    runs = [submit("tests.record", n=n, seconds=0.3, owner="acme") for n in range(20)]
    for run in runs:
        reached(run, State.RUNNING, State.SUCCEEDED)
        with suppress(StateConflict):
            ask_where(run)
    for run in runs:
        found = ended(run)
        assert not unanswered(found)
        for answer in answers_of(found):
            assert answer.attempt == 1
