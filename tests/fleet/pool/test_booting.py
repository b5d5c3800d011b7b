"""fleet/pool/children.py over real children: failed boots, their pauses, and the limit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from billiard.pool import EX_FAILURE
from celery import current_app, signals
from celery.worker import state as worker_state

from fleet.pool import children
from tests.fleet.pool.running import FREE, Running, length, nap, pool, two_children

pytestmark = pytest.mark.proof

__all__ = ["pool"]


class Failing:
    """A pool of which the next children end while they boot, when it is told so."""

    def __init__(self, pool: Running) -> None:
        self._left = 0
        self.at: list[float] = []
        self._pool = pool
        signals.worker_process_init.connect(self._end, weak=False)
        signals.worker_before_create_process.connect(self._count, weak=False)
        self._fails = False

    def kill(self, pid: int, *, next_fail: int) -> None:
        """Kill a child, and have so many of the next ones end while they boot."""
        self._left, self.at = next_fail, []
        os.kill(pid, signal.SIGKILL)

    def _count(self, **_signal: Any) -> None:
        self._fails = self._left > 0
        self._left -= self._fails
        self.at += [time.monotonic()] * self._fails

    def _end(self, **_signal: Any) -> None:
        if self._fails:
            os._exit(9)

    def stop(self) -> None:
        signals.worker_process_init.disconnect(self._end)
        signals.worker_before_create_process.disconnect(self._count)

    @property
    def is_done(self) -> bool:
        return not self._left and len(self._pool.pids) > 0


@pytest.fixture
def failing(pool: Running) -> Iterator[Failing]:
    failing = Failing(pool)
    yield failing
    failing.stop()


@pytest.fixture
def stopped() -> Iterator[None]:
    """A worker that was told to stop; undone at the end of the test."""
    yield
    worker_state.should_stop = None


def test_each_try_comes_after_twice_the_pause(
    pool: Running, failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that boots resets the count."""
    for _ in range(2):
        caplog.clear()
        failing.kill(pool.pids[0], next_fail=3)
        pool.turn_until(lambda: failing.is_done)
        pool.call(length, "abc")
        pool.settle(len(pool.answers) + 1)
        first, second, third = failing.at
        assert second - first >= 0.1 and third - second >= 0.2
        tries = [line for line in caplog.messages if "ended while it booted" in line]
        assert [line.rpartition(", ")[2] for line in tries] == ["1 of 10", "2 of 10", "3 of 10"]


def test_no_process_is_created_during_the_pause(
    pool: Running, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when Celery looks for missing processes."""
    monkeypatch.setattr(children, "PAUSE_SECONDS", 10.0)
    failing.kill(pool.pids[0], next_fail=1)
    pool.turn_until(lambda: failing.at and not pool.pids)
    pool.tasks.maintain_pool()
    assert pool.pids == []


def test_a_child_that_ends_after_it_has_booted_is_replaced_at_once(
    pool: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Its death is that of a task, or of the system."""
    os.kill(pool.pids[0], signal.SIGKILL)
    pool.call(length, "abc")
    pool.settle(1)
    assert not [line for line in caplog.messages if "booted" in line]


def test_a_row_of_failed_tries_ends_the_worker(
    pool: Running,
    failing: Failing,
    stopped: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing more is created, and the worker stops as it does after an error of its own."""
    monkeypatch.setattr(children, "TRIES", 3)
    failing.kill(pool.pids[0], next_fail=100)
    pool.turn_until(lambda: worker_state.should_stop is not None)
    pool.tasks.maintain_pool()
    assert (len(failing.at), pool.pids) == (3, [])
    assert worker_state.should_stop == EX_FAILURE
    assert "the worker ends" in caplog.messages[-1]


@two_children
def test_a_worker_does_not_end_while_a_process_lives(
    pool: Running, failing: Failing, stopped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often another one fails to boot: jobs go on, and at last that one boots."""
    monkeypatch.setattr(children, "TRIES", 2)
    lives = pool.pids[1]
    failing.kill(pool.pids[0], next_fail=4)
    pool.turn_until(lambda: failing.is_done and len(pool.pids) == 2)
    assert worker_state.should_stop is None and lives in pool.pids
    pool.call(length, "abc")
    assert pool.settle(1) == [3]


@pytest.fixture
def hurried() -> Iterator[None]:
    """A project whose processes have a twentieth of a second to boot."""
    before = current_app.conf.worker_proc_alive_timeout
    current_app.conf.worker_proc_alive_timeout = 0.05
    yield
    current_app.conf.worker_proc_alive_timeout = before


def test_a_process_has_the_time_that_its_boot_needs(hurried: None, pool: Running) -> None:
    """On a busy machine it gets no processor for long: it is not killed for that."""
    before = pool.pids
    os.kill(before[0], signal.SIGKILL)
    pool.turn_until(lambda: pool.pids and pool.pids != before)
    [booting] = pool.pids
    os.kill(booting, signal.SIGSTOP)
    pool.turn_for(2.5)
    os.kill(booting, signal.SIGCONT)
    pool.call(length, "abc")
    pool.settle(1)
    assert pool.pids == [booting]


def test_a_child_that_hangs_while_it_boots_is_replaced(
    pool: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that a boot may take."""
    monkeypatch.setattr(children, "BOOT_SECONDS", 0.0)
    another = Running()
    try:
        before = another.pids
        os.kill(before[0], signal.SIGKILL)
        another.turn_until(lambda: another.pids and another.pids != before)
        [booting] = another.pids
        os.kill(booting, signal.SIGSTOP)
        another.turn_until(lambda: another.pids and another.pids != [booting])
    finally:
        another.end()


@two_children
def test_a_child_that_ends_while_it_boots_frees_no_slot(pool: Running, failing: Failing) -> None:
    """It had none: the slot of the running job stays taken."""
    busy = pool.begin(nap, 60)
    [idle] = [pid for pid in pool.pids if pid != busy.child.pid]
    failing.kill(idle, next_fail=1)
    pool.turn_until(lambda: failing.is_done and len(pool.pids) == 2)
    assert pool.slots.value == FREE - 1
