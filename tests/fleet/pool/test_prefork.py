"""fleet/worker/gate.py over the real prefork pool: jobs that wait, or are forgotten."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import current_app

from fleet.transport.held_leases import Load
from fleet.worker.admitted import AdmittedRun
from jobs import submit
from jobs.models import Owner, Run
from tests.fleet.nodes import Node, double, nap
from tests.fleet.pool.running import Loop
from tests.jobs.scenes import hinted, known, states

pytestmark = [pytest.mark.usefixtures("committed"), pytest.mark.proof]


class PreforkNode(Node):
    """A node over one real child, with the loop in which its pool works."""

    def __init__(self, **options: Any) -> None:
        self.loop = Loop(**options)
        self.released_count = 0
        super().__init__(self.loop.tasks)
        self.gate._release_slot = self._release
        self.work(until=lambda: self.child.has_booted)

    @property
    def processes(self) -> Any:
        return self.loop.processes

    @property
    def child(self) -> Any:
        [child] = self.processes.children
        return child

    def work(self, *, until: Callable[[], object]) -> None:
        """Turn both loops until something holds."""

        def turned() -> bool:
            next(self.loop.turns)
            return bool(until())

        self.turn(until=turned)

    def stop_child(self) -> None:
        os.kill(self.child.pid, signal.SIGSTOP)

    def holds(self, run: Run) -> AdmittedRun:
        """Return the gate's entry of a run."""
        return self.gate._held[str(run.id)]

    def take_back(self, run: Run, way: str) -> None:
        """Take a run back that no child has read, by one of the ways in which that happens."""
        if way == "late":
            self.holds(run).admitted_at -= 31
            self.gate.hand_back_late()
        elif way == "stop":
            self.gate.close()
        else:  # as Celery does after a lost connection
            waiting = self.gate.waiting_in_pool()
            self.pool.flush()
            self.gate.reclaim([*waiting, *self.gate.waiting_in_pool()])

    def end(self) -> None:
        self.loop.end()
        super().end()

    def _release(self) -> None:
        self.released_count += 1


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[PreforkNode]:
    node = PreforkNode(**getattr(request, "param", {}))
    yield node
    node.end()


def _unread(node: PreforkNode, acme: Owner, **options: Any) -> Run:
    """Return a run that the pool has, and that its stopped child has not read."""
    node.stop_child()
    run = submit(double, 21, owner=acme, **options)
    node.start()
    node.turn(until=lambda: node.holds(run).job)
    return run


def _begun(node: PreforkNode, acme: Owner, seconds: float) -> Run:
    """Return a run that the child has begun."""
    run = submit(nap, seconds, owner=acme)
    node.start()
    node.work(until=lambda: node.holds(run).started_at)
    return run


def test_what_no_child_takes_in_time_is_withdrawn(node: PreforkNode, acme: Owner) -> None:
    """From the pool as well, which then has nothing to run any more, and its slot free."""
    run = _unread(node, acme)
    job = node.holds(run).job
    node.gate.hand_back_late()
    assert node.processes.has(job)
    node.take_back(run, "late")
    node.turn(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "queued"]
    assert (hinted(), node.released_count) == ([run.id], 1)
    assert not node.processes.has(job)
    assert node.channel.leases.load(node.channel.holder) == Load()


@pytest.mark.parametrize("way", ["late", "lost connection", "stop"])
@pytest.mark.parametrize(
    ("options", "after"), [({}, ["queued"]), ({"max_attempts": 1}, ["running", "retrying"])]
)
def test_what_no_child_has_read_is_taken_back(
    node: PreforkNode, acme: Owner, way: str, options: Any, after: list[str]
) -> None:
    """The pool would never report it; no attempt is spent.

    A start that is recorded is tried again: its row would refuse that it is given back, and take it
    for running until the lease ends.
    """
    run = _unread(node, acme, **options)
    node.take_back(run, way)
    node.turn(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", *after]
    assert run.attempt_count == 0


@pytest.mark.parametrize("way", ["lost connection", "late"])
def test_what_a_child_has_read_stays_the_pool_s(node: PreforkNode, acme: Owner, way: str) -> None:
    """The child does it: its outcome is read."""
    run = _begun(node, acme, 1.0)
    node.take_back(run, way)
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]


def test_a_recorded_start_begins_while_the_node_stops(node: PreforkNode, acme: Owner) -> None:
    """A free child is about to read it; its only attempt is not given back."""
    run = submit(double, 21, owner=acme, max_attempts=1)
    node.start()
    node.turn(until=lambda: node.holds(run).job)
    node.gate.pool_closes()
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]


def test_a_run_that_its_child_never_read_is_done_by_the_next(
    node: PreforkNode, acme: Owner
) -> None:
    """It has not begun."""
    run = _unread(node, acme)
    assert node.holds(run).started_at is None
    os.kill(node.child.pid, signal.SIGKILL)
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
    assert (run.attempt_count, run.attempts.get().outcome) == (1, "succeeded")


def test_a_run_that_its_child_has_read_may_have_begun(node: PreforkNode, acme: Owner) -> None:
    """Another child would start it twice under one token; its retry policy decides."""
    run = _begun(node, acme, 60)
    os.kill(node.child.pid, signal.SIGKILL)
    node.work(until=lambda: not node.gate.held())
    node.channel.settle()
    assert states(run) == ["queued", "admitted", "running", "retrying"]
    assert (run.attempts.get().outcome, known()) == ("child lost", [])


# As by `--max-memory-per-child 1`: a child ends after each run, and only it knows that.
@pytest.mark.parametrize("node", [{"max_memory_per_child": 1}], indirect=True)
def test_a_child_that_ends_takes_no_run_along(node: PreforkNode, acme: Owner) -> None:
    """What waits behind its last one is the next child's."""
    runs = [submit(double, n, owner=acme) for n in (1, 2)]
    for _ in runs:
        node.receive()
    node.turn(until=lambda: len(node.begun) == 2)
    node.begin()
    node.begin()
    node.work(until=lambda: not node.gate.held())
    for run in runs:
        assert states(run)[-1] == "succeeded"
        assert run.attempt_count == 1


def test_a_run_that_has_ended_leaves_no_ring(node: PreforkNode, acme: Owner) -> None:
    """Collecting thousands of cycles would stop the loop for a fifth of a second."""
    run = submit(double, 21, owner=acme)
    node.start()
    gc.disable()
    try:
        job = weakref.ref(node.holds(run).job)
        node.work(until=lambda: not node.gate.held())
        node.begun.clear()
        assert job() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("way", ["lost connection", "stop"])
def test_a_plain_task_that_no_child_has_read_goes_back(node: PreforkNode, way: str) -> None:
    """Another worker may have it."""
    node.stop_child()
    current_app.send_task(double.name, (21,), queue="jobs")
    node.start()
    node.pool.flush() if way == "lost connection" else node.pool.close()
    node.channel.settle()
    assert len(hinted()) == 1


def test_a_plain_task_that_a_child_has_read_ends_over_a_lost_connection(node: PreforkNode) -> None:
    """It would stay leased without end."""
    current_app.send_task(nap.name, (1,), queue="jobs")
    node.start()
    node.pool.flush()
    node.work(until=lambda: not node.processes.jobs)
    node.channel.settle()
    assert known() == []
