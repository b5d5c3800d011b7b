"""fleet/pool/reconciling.py over real children: a job that no process has is ended as lost."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from billiard.exceptions import WorkerLostError
from kombu.asynchronous.semaphore import LaxBoundedSemaphore

from fleet.pool import pipes, reconciling
from fleet.pool.reconciling import LOOK_SECONDS
from tests.fleet.pool.test_pool import A_MOMENT, LARGE, Running, length, nap, pool, until_read

pytestmark = pytest.mark.proof

__all__ = ["pool"]


class Lost:
    """A job that takes a minute, in a slot of 100, and the errors of its caller."""

    def __init__(self, pool: Running) -> None:
        self.errors: list[Any] = []
        self.semaphore = LaxBoundedSemaphore(100)
        pool.children._putlock._semaphore = self.semaphore
        self.semaphore.acquire(
            lambda: setattr(
                self, "job", pool.tasks.apply_async(nap, (60,), error_callback=self.errors.append)
            )
        )

    def is_heard_of(self, pool: Running) -> None:
        """Turn until its caller has the error of the loss; its slot is then free."""
        assert self.semaphore.value == 99
        while not self.errors:
            pool.turn()
        [einfo] = self.errors
        assert isinstance(getattr(einfo.exception, "exc", einfo.exception), WorkerLostError)
        assert self.semaphore.value == 100
        assert self.job._job not in pool.children._cache

    def never_is(self, pool: Running) -> None:
        """Turn for three checks, after which its caller has no error."""
        until = time.monotonic() + 3 * LOOK_SECONDS
        while time.monotonic() < until:
            pool.turn()
        assert (self.errors, self.semaphore.value) == ([], 99)


def test_a_job_that_runs_is_not_lost(pool: Running) -> None:
    """However often the pool checks."""
    lost = Lost(pool)
    until_read(lost.job)
    lost.never_is(pool)


def test_the_job_of_a_child_that_the_pool_has_forgotten_is_lost(pool: Running) -> None:
    """The next child has its pipes, and is free although that job counts as its own."""
    lost = Lost(pool)
    until_read(lost.job)
    [child] = children = pool.children._pool
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    # All that Celery does with a child that has ended, but for its jobs.
    children.remove(child)
    pool.children._process_cleanup_queues(child)
    pool.children.on_process_down(child)
    pool.children.maintain_pool()
    pool.children._putlock.release()
    lost.is_heard_of(pool)
    pool.call(length, "abc")
    assert pool.settle(1) == [3]


def test_the_job_of_a_child_that_another_library_has_reaped_is_lost(pool: Running) -> None:
    """Its exit status is gone, and Celery takes it for alive."""
    lost = Lost(pool)
    until_read(lost.job)
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGKILL)
    assert os.waitpid(child.pid, 0)[0] == child.pid
    assert child._is_alive()
    lost.is_heard_of(pool)
    pool.call(length, "abc")
    assert pool.settle(1) == [3]


def fork_and_wait() -> int:
    """Return 0 in a copy, and 1 here when the copy has ended; it stays a zombie."""
    copy = os.fork()
    if not copy:
        return 0
    os.waitid(os.P_PID, copy, os.WEXITED | os.WNOWAIT)
    return 1


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children whose forked copies continue to read."""
    monkeypatch.setattr(pipes, "end_copy_of", lambda _pid: None)


@pytest.fixture
def unguarded_pool(unguarded: None, pool: Running) -> Running:
    return pool


def test_a_job_that_a_copy_of_its_child_has_read_is_lost_with_the_copy(
    unguarded_pool: Running,
) -> None:
    """The child lives and never saw it; it takes the next job."""
    pool = unguarded_pool
    pool.call(fork_and_wait)
    assert pool.settle(1) == [0]
    lost = Lost(pool)
    until_read(lost.job)
    [child] = pool.children._pool
    assert child.last_read.reader != child.pid
    lost.never_is(pool)
    os.kill(child.last_read.reader, signal.SIGKILL)
    lost.is_heard_of(pool)
    pool.call(length, "abc", expected=A_MOMENT)
    assert pool.settle(2)[-1] == 3
    assert pool.children._pool == [child]


def test_a_copy_of_a_child_reads_no_job_and_says_nothing(pool: Running) -> None:
    """Also where no task's body ends it: both pipes belong to the child alone."""
    pool.call(fork_and_wait)
    [child] = pool.children._pool
    assert pool.settle(1) == [1]
    for _ in range(20):
        pool.call(length, "abc")
    assert pool.settle(21)[1:] == [3] * 20
    assert child.last_read.reader == child.pid
    assert pool.children._pool == [child]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "UNREAD_LOOKS", 2)


@pytest.mark.parametrize("text", ["abc", "a" * LARGE], ids=["small", "larger than a pipe"])
def test_the_job_of_a_child_that_does_not_read_is_given_to_another(
    hasty: None, pool: Running, text: str
) -> None:
    """A stopped child never would; it is killed, and its job runs once."""
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGSTOP)
    pool.call(length, text)
    assert pool.settle(1) == [len(text)]
    assert child not in pool.children._pool


def test_a_child_that_has_read_its_job_is_not_killed(hasty: None, pool: Running) -> None:
    """It may be stopped as well, and then its task has begun: its time limit is for that."""
    lost = Lost(pool)
    until_read(lost.job)
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGSTOP)
    lost.never_is(pool)
    assert pool.children._pool == [child]


@pytest.mark.parametrize("limit", ["timeout", "soft_timeout"])
def test_time_limits_begin_when_the_child_has_read_the_job(pool: Running, limit: str) -> None:
    """A child that is stopped, or waits for a processor, has not begun the task."""
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGSTOP)
    failed: list[Any] = []
    limits = {"timeout": None, "soft_timeout": None, limit: 1.0}
    job = pool.call(length, "abc", error_callback=failed.append, **limits)
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        pool.turn()
    assert not job.ready() and pool.children._pool == [child]
    os.kill(child.pid, signal.SIGCONT)
    assert pool.settle(1) == [3]
    assert not failed
