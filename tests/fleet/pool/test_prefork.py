"""fleet/worker/gate.py over Celery's real prefork pool: jobs that wait, or are forgotten."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from celery import current_app
from celery.concurrency.prefork import TaskPool
from kombu.asynchronous import Hub, set_event_loop

from fleet.pool.pipes import has_read
from fleet.pool.pool import Pool
from fleet.transport.held_leases import Load
from fleet.worker.admitted import AdmittedRun
from jobs import submit
from jobs.models import Owner, Run
from tests.fleet.nodes import Node, double, nap
from tests.jobs.scenes import hinted, known, states
from tests.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("committed"), pytest.mark.proof]


class PreforkNode(Node):
    """A node over one real child, with the loop in which its pool works."""

    def __init__(self, **options: Any) -> None:
        self.hub = Hub()
        set_event_loop(self.hub)
        app = current_app._get_current_object()
        pool = TaskPool(1, app=app, threads=False, initargs=(app, "w1@here"), **options)
        pool.Pool = Pool
        pool.start()
        pool.register_with_event_loop(self.hub)
        self._turns = self.hub.create_loop()
        self.released_count = 0
        super().__init__(pool)
        self.gate._release_slot = self._release

    def work(self, *, until: Callable[[], object]) -> None:
        """Turn both loops until something holds."""

        def turned() -> bool:
            self.work_once()
            return bool(until())

        self.turn(until=turned)

    def work_once(self) -> None:
        """Turn the pool's loop, not that in which the I/O thread posts."""
        # Or it sleeps for as long as nothing happens in the pool.
        self.hub.call_later(0.02, lambda: None)
        next(self._turns)

    def stopped_child(self) -> int:
        """Freeze the child, once it is up; return its process id."""
        self.work(until=lambda: self.pool._pool._all_inqueues)
        [child] = self.pool._pool._pool
        os.kill(child.pid, signal.SIGSTOP)
        return int(child.pid)

    def holds(self, run: Run) -> AdmittedRun:
        """Return the gate's entry of a run."""
        return self.gate._held[str(run.id)]

    def lose_the_broker(self) -> int:
        """Have the pool forget jobs that were not accepted, as it does; return the slots taken."""
        waiting = self.gate.waiting_in_pool()
        self.pool.flush()
        return self.gate.reclaim([*waiting, *self.gate.waiting_in_pool()])

    def end(self) -> None:
        for child in self.pool._pool._pool:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)  # one that ends by itself takes a second
        self.pool.terminate()
        set_event_loop(None)
        super().end()

    def _release(self) -> None:
        self.released_count += 1


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[PreforkNode]:
    node = PreforkNode(**getattr(request, "param", {}))
    yield node
    node.end()


def _in_pool(node: PreforkNode, acme: Owner) -> Run:
    """Return a run that the pool has, and that no child has been sent."""
    run = submit(double, 21, owner=acme)
    node.start()
    assert node.holds(run).job in node.pool._pool.outbound_buffer
    return run


def test_what_no_child_takes_in_time_is_withdrawn(node: PreforkNode, acme: Owner) -> None:
    """From the pool as well, which then has nothing to run any more, and its slot free."""
    run = _in_pool(node, acme)
    node.gate.hand_back_late()
    assert node.pool._pool.outbound_buffer
    node.holds(run).admitted_at -= 31
    node.gate.hand_back_late()
    node.turn(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "queued"]
    assert (hinted(), node.released_count) == ([run.id], 1)
    assert not node.pool._pool.outbound_buffer and not node.pool._pool._cache
    assert node.channel.leases.load(node.channel.holder) == Load()


def test_what_no_child_was_sent_is_handed_back_when_the_broker_is_lost(
    node: PreforkNode, acme: Owner
) -> None:
    """The pool forgets it, and would never report it."""
    run = _in_pool(node, acme)
    assert node.lose_the_broker() == 0
    node.turn(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "queued"]
    assert run.attempt_count == 0


def test_what_a_child_was_sent_stays_the_pool_s(node: PreforkNode, acme: Owner) -> None:
    """The child will run it: its outcome is read, and it takes a slot and that child."""
    run = _in_pool(node, acme)
    job = node.holds(run).job
    node.work(until=lambda: job._write_to)
    assert not job._accepted
    assert node.lose_the_broker() == 1
    assert job._write_to.inqW_fd in node.pool._pool._busy_workers
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]


def test_what_a_child_has_is_not_withdrawn(node: PreforkNode, acme: Owner) -> None:
    """However late it is: the child will run it."""
    run = _in_pool(node, acme)
    job = node.holds(run).job
    node.work(until=lambda: job._write_to)
    node.holds(run).admitted_at -= 31
    node.gate.hand_back_late()
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]


def _sent_to_a_stopped_child(node: PreforkNode, acme: Owner, argument: Any = 21) -> tuple[int, Run]:
    """Return the process id of a child that reads nothing, and the run that it was written."""
    child = node.stopped_child()
    run = submit(double, argument, owner=acme)
    node.start()
    return child, run


def test_a_run_that_its_child_never_read_is_done_by_the_next(
    node: PreforkNode, acme: Owner
) -> None:
    """It has not begun, though it counts as begun from when a waiting child was written it."""
    child, run = _sent_to_a_stopped_child(node, acme)
    assert node.holds(run).started_at is not None
    os.kill(child, signal.SIGKILL)
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
    assert (run.attempt_count, run.attempts.get().outcome) == (1, "succeeded")


@pytest.mark.parametrize(
    ("argument", "seen"), [(21, ["running"]), ("x" * 5_000, [])], ids=["short", "long"]
)
def test_a_run_that_its_child_has_read_may_have_begun(
    node: PreforkNode, acme: Owner, argument: Any, seen: list[str]
) -> None:
    """Its report can be lost with it: another child would start the run twice under one token."""
    child, run = _sent_to_a_stopped_child(node, acme, argument)
    job = node.holds(run).job
    job._write_to.last_read.note(job._job)
    os.kill(child, signal.SIGKILL)
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", *seen, "retrying"]
    assert run.attempts.get().outcome == "child lost"


def test_a_run_that_no_process_has_any_more_is_lost(node: PreforkNode, acme: Owner) -> None:
    """The worker finds it by itself; its retry policy decides, and its message is acked."""
    node.work(until=lambda: node.pool._pool._all_inqueues)
    run = submit(nap, 60, owner=acme)
    node.start()
    job = node.holds(run).job
    node.work(until=lambda: has_read(job._write_to, job))
    children = node.pool._pool
    [child] = children._pool
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    # All that Celery does with a child that has ended, but for its jobs.
    children._pool.remove(child)
    children._process_cleanup_queues(child)
    children.on_process_down(child)
    children.maintain_pool()
    node.work(until=lambda: not node.gate.held())
    node.channel.settle()
    assert states(run) == ["queued", "admitted", "running", "retrying"]
    assert (run.attempts.get().outcome, known()) == ("child lost", [])


def test_a_run_that_was_never_read_goes_back_with_a_lost_broker(
    node: PreforkNode, acme: Owner
) -> None:
    """It did nothing, which costs no attempt."""
    child, run = _sent_to_a_stopped_child(node, acme)
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    assert node.lose_the_broker() == 0
    node.turn(until=lambda: not node.gate.held())
    assert states(run)[-1] == "queued"
    assert (run.attempt_count, not node.pool._pool._cache) == (0, True)


def test_a_run_that_has_ended_leaves_no_ring(node: PreforkNode, acme: Owner) -> None:
    """Collecting thousands of cycles would stop the loop for a fifth of a second."""
    run = _in_pool(node, acme)
    gc.disable()
    try:
        job = weakref.ref(node.holds(run).job)
        node.work(until=lambda: not node.gate.held())
        node.begun.clear()
        assert job() is None
    finally:
        gc.enable()


def _kill_the_next(node: PreforkNode) -> list[int]:
    """Have the next child killed as soon as it is forked; its process id is in the list then."""
    children, killed = node.pool._pool, []
    track = children.on_process_up

    def track_and_kill(child: Any) -> None:
        track(child)
        os.kill(child.pid, signal.SIGKILL)
        killed.append(child.pid)
        children.on_process_up = track

    children.on_process_up = track_and_kill
    return killed


# As by `--max-memory-per-child 1`: a child ends after each run, and only it knows that.
@pytest.mark.parametrize("node", [{"max_memory_per_child": 1}], indirect=True)
def test_what_came_back_is_not_lost_with_a_child_that_never_had_it(
    node: PreforkNode, acme: Owner
) -> None:
    """A child that ended by itself has not begun it, nor has the next one before it is sent."""
    node.work(until=lambda: node.pool._pool._all_inqueues)
    first, second = (submit(double, n, owner=acme) for n in (1, 2))
    node.receive()
    node.receive()
    node.turn(until=lambda: len(node.begun) == 2)
    node.begin()
    node.work(until=node.holds(first).job.ready)
    node.begin()
    assert node.holds(second).job._write_to
    killed = _kill_the_next(node)
    node.work(until=lambda: not node.gate.held())
    assert len(killed) == 1
    assert states(first) == states(second) == ["queued", "admitted", "running", "succeeded"]


def _plain_in_pool(node: PreforkNode, task: Any = double, *args: object) -> Any:
    """Return the pool's job of a plain task, which no child has been sent."""
    current_app.send_task(task.name, args or (21,), queue="jobs")
    node.start()
    [job] = node.pool._pool._cache.values()
    return job


def test_a_plain_task_that_a_child_was_sent_is_heard_of(node: PreforkNode) -> None:
    """The pool forgets it with a lost connection; it would stay leased without end."""
    job = _plain_in_pool(node)
    node.work(until=lambda: job._write_to)
    assert not job._accepted
    node.pool.flush()
    assert job._write_to.inqW_fd in node.pool._pool._busy_workers
    node.work(until=job.ready)
    node.channel.settle()
    assert known() == []


def test_a_child_that_runs_a_task_is_busy_over_a_lost_connection(node: PreforkNode) -> None:
    """Otherwise the next task would be written to it, and wait behind this one."""
    job = _plain_in_pool(node, nap, 1)
    node.work(until=lambda: job._accepted)
    assert not job.ready()
    node.pool.flush()
    assert job._write_to.inqW_fd in node.pool._pool._busy_workers


def test_what_was_sent_to_a_child_that_has_died_goes_back(node: PreforkNode) -> None:
    """No process would run it any more."""
    child = node.stopped_child()
    assert _plain_in_pool(node)._write_to
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    node.pool.flush()
    node.channel.settle()
    assert len(hinted()) == 1
    assert not node.pool._pool._cache


def test_a_plain_task_that_no_child_was_sent_goes_back(node: PreforkNode) -> None:
    """Another worker may have it."""
    _plain_in_pool(node)
    node.pool.flush()
    node.channel.settle()
    assert len(hinted()) == 1
    assert not node.pool._pool._cache


def test_a_run_that_ended_and_is_not_recorded_takes_no_slot(node: PreforkNode, acme: Owner) -> None:
    """Otherwise the slot would never be freed, and the worker would start less and less."""
    run = _in_pool(node, acme)
    job = node.holds(run).job
    while not job.ready():
        node.work_once()
    assert node.gate.held()
    assert node.lose_the_broker() == 0
    node.work(until=lambda: not node.gate.held())
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
