"""fleet/pool/booting.py over real children: failed boots, their pauses, and the limit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from billiard.pool import EX_FAILURE
from celery import current_app
from celery.worker import state as worker_state

from fleet.pool import booting
from tests.fleet.pool.test_pool import (
    Running,
    length,
    nap,
    pool,
    two_children,
    until_read,
    with_slots,
)

pytestmark = pytest.mark.proof

__all__ = ["pool"]


class Killed:
    """Children that are killed as soon as they are forked: the next `count`."""

    def __init__(self, pool: Running, *, count: int) -> None:
        self.count = count
        self.at: list[float] = []
        self._children = pool.children
        self._track = pool.children.on_process_up
        pool.children.on_process_up = self._kill

    def _kill(self, child: Any) -> None:
        self._track(child)
        if self.count:
            self.count -= 1
            self.at.append(time.monotonic())
            os.kill(child.pid, signal.SIGKILL)


@pytest.fixture
def stopped() -> Iterator[None]:
    """A worker that was told to stop; undone at the end of the test."""
    yield
    worker_state.should_stop = None


def _kill_one(pool: Running) -> None:
    os.kill(pool.children._pool[0].pid, signal.SIGKILL)


def test_each_try_comes_after_twice_the_pause(
    pool: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that boots resets the count."""
    for _ in range(2):
        caplog.clear()
        killed = Killed(pool, count=3)
        _kill_one(pool)
        while killed.count or not pool.children._all_inqueues:
            pool.turn()
        pool.call(length, "abc")
        pool.settle(len(pool.answers) + 1)
        first, second, third = killed.at
        assert second - first >= 0.1 and third - second >= 0.2
        tries = [line for line in caplog.messages if "ended while it booted" in line]
        assert tries == [
            f"a process of the pool ended while it booted (signal 9 (SIGKILL)): next try in {said}"
            for said in ("0.1 s, 1 of 10", "0.2 s, 2 of 10", "0.4 s, 3 of 10")
        ]


def test_no_process_is_created_during_the_pause(
    pool: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when Celery looks for missing processes."""
    monkeypatch.setattr(booting, "PAUSE_SECONDS", 10.0)
    killed = Killed(pool, count=1)
    _kill_one(pool)
    while not killed.at or pool.children._pool:
        pool.turn()
    pool.children.maintain_pool()
    assert pool.children._pool == []


def test_a_child_that_ends_after_it_has_booted_is_replaced_at_once(
    pool: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Its death is that of a task, or of the system."""
    _kill_one(pool)
    while len(pool.children._pool) != 1 or not pool.children._all_inqueues:
        pool.turn()
    assert not [line for line in caplog.messages if "booted" in line]


def test_a_row_of_failed_tries_ends_the_worker(
    pool: Running, stopped: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing more is created, and the worker stops as it does after an error of its own."""
    monkeypatch.setattr(booting, "TRIES", 3)
    killed = Killed(pool, count=100)
    _kill_one(pool)
    while worker_state.should_stop is None:
        pool.turn()
    pool.children.maintain_pool()
    assert (len(killed.at), pool.children._pool) == (3, [])
    assert worker_state.should_stop == EX_FAILURE
    assert caplog.messages[-1].endswith("3 tries in a row have failed, the worker ends")


@two_children
def test_a_worker_does_not_end_while_a_process_lives(
    pool: Running, stopped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often another one fails to boot: jobs go on, and at last that one boots."""
    monkeypatch.setattr(booting, "TRIES", 2)
    busy, victim = pool.children._pool
    killed = Killed(pool, count=4)
    os.kill(victim.pid, signal.SIGKILL)
    while killed.count or len(pool.children._all_inqueues) < 2:
        pool.turn()
    assert worker_state.should_stop is None
    assert busy in pool.children._pool
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
    booted: list[int] = []
    track = pool.children.on_process_up

    def freeze(child: Any) -> None:
        track(child)
        booted.append(child.pid)
        os.kill(child.pid, signal.SIGSTOP)

    pool.children.on_process_up = freeze
    _kill_one(pool)
    while not booted:
        pool.turn()
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pool.turn()
    os.kill(booted[0], signal.SIGCONT)
    while not pool.children._all_inqueues:
        pool.turn()
    assert booted == [child.pid for child in pool.children._pool]


@two_children
def test_a_child_that_ends_while_it_boots_frees_no_slot(pool: Running) -> None:
    """It had none: the slot of the running job stays taken."""
    semaphore = with_slots(pool)
    busy = pool.call(nap, 60)
    until_read(busy)
    killed = Killed(pool, count=1)
    [idle] = [child for child in pool.children._pool if child is not busy._write_to]
    os.kill(idle.pid, signal.SIGKILL)
    while not killed.at or len(pool.children._all_inqueues) < 2:
        pool.turn()
    assert semaphore.value == 51, "Celery frees one with the child that had booted"
