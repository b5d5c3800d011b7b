"""Workers are killed, frozen and stopped, and Redis is emptied, in the middle of the work."""

import os
import signal
import time
from collections import Counter
from functools import partial
from typing import Any

import pytest
import redis

from jobs import submit_many
from jobs.core.states import State
from jobs.management.stack.programs import job_worker
from jobs.management.stack.stack import Stack
from jobs.models import Attempt, Run, Submission
from tests.flows.kept import drained, ended_count, kept
from tests.flows.processes import Processes
from tests.judge import read_task_events
from tests.waiting import wait_for

RUNS = 300
SLOTS = 2
# A worker starts the next runs while outcomes of the last ones are on their way to the rows:
# the window of the fair queue holds 100 ms of them a slot.
RUN_SECONDS = 0.03
UNRECORDED = SLOTS * 3
NAME = "victim"
# Two seconds are promised; the tests' machine may be busy with others.
CHILD_LOST_SECONDS = 4


@pytest.mark.parametrize(
    ("killed", "flushed"),
    [
        # What it asks, "both" asks as well.
        pytest.param(True, False, id="kill", marks=pytest.mark.chaos),
        pytest.param(False, True, id="flush", marks=pytest.mark.proof),
        pytest.param(True, True, id="both"),
    ],
)
def test_a_killed_worker_and_an_emptied_redis_lose_nothing(
    stack: Processes, broker: redis.Redis, verdict: Any, *, killed: bool, flushed: bool
) -> None:
    """Every run succeeds; only unrecorded runs of the killed worker start again."""
    with kept(stack, job_worker(NAME, slots=SLOTS)) as victims:
        submission = _submit(RUNS, seconds=RUN_SECONDS)
        wait_for(lambda: ended_count() > RUNS // 3)
        if killed:
            stack.tasks.disturb(_pid(victims), how="killed")
            victims.kill_group(NAME)
        if flushed:
            broker.flushall()
        drained(victims)
    figures = verdict(submission).figures
    assert _all_succeeded()
    assert 0 <= figures["starts"] - RUNS <= (SLOTS + UNRECORDED if killed else 0), figures


def test_a_killed_pool_child_ends_its_attempt_alone(stack: Processes, verdict: Any) -> None:
    """Its run is tried again soon; the other slots are not affected."""
    submission = _submit(60, seconds=0.5)
    worker = stack.started[0]
    waits = []
    for lost in range(1, 4):
        child = wait_for(lambda: _busy(stack, worker.pid))[0]
        stack.tasks.disturb(child, how="killed")
        killed_at = time.monotonic()
        os.kill(child, signal.SIGKILL)
        wait_for(partial(_child_lost_count_is, lost))
        waits.append(time.monotonic() - killed_at)
    drained()
    figures = verdict(submission).figures
    assert _all_succeeded()
    assert figures["starts"] - 60 <= figures["lost leases"] == 3, figures
    assert max(waits) < CHILD_LOST_SECONDS, waits


def test_a_frozen_worker_is_fenced_when_it_goes_on(stack: Processes, verdict: Any) -> None:
    """Past its lease its runs go elsewhere, its own outcomes come too late, and it works again."""
    with kept(stack, job_worker(NAME, slots=SLOTS)) as victims:
        submission = _submit(10, seconds=2)
        pid = _pid(victims)
        wait_for(lambda: len(_busy(stack, pid)) == SLOTS)
        stack.tasks.disturb(pid, how="frozen")
        os.killpg(pid, signal.SIGSTOP)
        # Its outcomes come while other attempts of the same runs are under way.
        wait_for(lambda: _started_twice(stack) == SLOTS, seconds=30)
        stack.tasks.disturb(pid, how="thawed")
        os.killpg(pid, signal.SIGCONT)
        wait_for(lambda: not _busy(stack, pid), what="the bodies that were frozen to end")
        more = _submit(20, seconds=0.3)
        wait_for(lambda: _busy(stack, pid), what="the thawed worker to work")
        drained(victims)
    figures = verdict(submission, more).figures
    assert _all_succeeded()
    # A run that was admitted and had not started when the worker froze loses its lease, too.
    assert figures["starts"] - 30 == SLOTS <= figures["lost leases"], figures


def test_a_stopped_worker_ends_what_runs_and_hands_over_the_rest(
    stack: Processes, verdict: Any
) -> None:
    """After SIGTERM no run is lost, doubled or counted as an attempt that failed."""
    with kept(stack, job_worker(NAME, slots=SLOTS)) as victims:
        submission = _submit(60, seconds=0.3)
        pid = _pid(victims)
        wait_for(lambda: len(_busy(stack, pid)) == SLOTS)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: victims.pid(NAME) is None, what="the worker's end")
        assert not _busy(stack, pid)
        drained()
    figures = verdict(submission).figures
    assert _all_succeeded()
    assert figures["starts"] == 60, figures
    assert not Attempt.objects.exclude(outcome__in=["succeeded", "given back"]).exists()


def _submit(count: int, *, seconds: float) -> Submission:
    calls = [{"n": n, "seconds": seconds} for n in range(count)]
    return submit_many("tests.record", calls, owner="acme", max_attempts=9)


def _pid(victims: Stack) -> int:
    pid = victims.pid(NAME)
    assert pid is not None
    return pid


def _busy(scene: Processes, parent: int) -> list[int]:
    """Return the children of a worker in which a body has begun and not ended."""
    busy: dict[int, bool] = {}
    for event in read_task_events(scene.tasks.path):
        if event.parent_pid == parent:
            busy[event.pid] = event.event == "start"
        elif event.event == "killed":
            busy.pop(event.pid, None)
    return [pid for pid, is_busy in busy.items() if is_busy]


def _started_twice(scene: Processes) -> int:
    """Return how many runs have begun more than once."""
    events = read_task_events(scene.tasks.path)
    starts = Counter(event.run for event in events if event.event == "start")
    return sum(count > 1 for count in starts.values())


def _child_lost_count_is(count: int) -> bool:
    return Attempt.objects.filter(outcome="child lost").count() == count


def _all_succeeded() -> bool:
    return not Run.objects.exclude(state=State.SUCCEEDED).exists()
