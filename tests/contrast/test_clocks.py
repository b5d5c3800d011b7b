"""Workers and callers whose clocks are two minutes wrong, either way."""

import os
import signal
import time

import pytest

from tests.contrast.conftest import Play
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

CLOCKS = ("", "+120s", "-120s")
wrong = pytest.mark.parametrize("clock", CLOCKS[1:])


def test_a_running_task_stays_with_its_worker(play: Play) -> None:
    """Leases are counted by Redis's clock alone: whoever holds it, it starts once.

    Each of three workers in turn holds a task three times as long as a lease, while the others,
    one of them ahead and one behind, look for work.
    """
    scene, workers = play("fair", CONTRAST_LEASE="3"), []
    for clock in CLOCKS:
        with scene.clock(clock):
            workers.append(scene.worker())
    for number, clock in enumerate(CLOCKS):
        others = [worker for worker in workers if worker is not workers[number]]
        for other in others:
            os.killpg(other.pid, signal.SIGSTOP)
        name = f"held-by{clock or '+0s'}"
        scene.call(f"run.delay({name!r}, 9)")
        wait_for(lambda at=name: at in scene.said("start"), what=name)  # type: ignore[misc]
        [started] = scene.times("start", name)
        assert _is_off(started, by=clock)
        for other in others:
            os.killpg(other.pid, signal.SIGCONT)
        wait_for(lambda at=name: at in scene.said("end"), what=f"{name} to end")  # type: ignore[misc]
        # Its end is said a moment later, and a worker that is frozen before that loses it.
        wait_for(lambda: not any(scene.held().values()), what=f"{name} to be acknowledged")
    assert len(scene.said("start")) == len(scene.said("end")) == 3


def test_stock_starts_it_again(play: Play) -> None:
    """A worker that is ahead takes every message of the others for one past its time."""
    scene = play("stock", CONTRAST_LEASE="5")
    scene.worker()
    scene.call("run.delay('held', 30)")  # the boot of the other on a slow machine
    wait_for(lambda: "held" in scene.said("start"))
    with scene.clock("+120s"):
        scene.worker()
    wait_for(lambda: scene.said("end"), what="the first to end", seconds=45)
    wait_for(lambda: len(scene.said("start")) > 1, what="the second start")


@wrong
def test_a_countdown_of_a_caller(play: Play, clock: str) -> None:
    """It is told as a delay from now, and waited for by Redis's clock."""
    scene = play("fair", CONTRAST_LEASE="30")
    scene.worker()
    before = time.time()
    with scene.clock(clock):
        scene.call("say_and_send('later', countdown=10)")
    [sent] = scene.times("sent", "later")
    assert _is_off(sent, by=clock)
    [started] = wait_for(lambda: scene.times("start", "later"))
    after_sent = started - (sent - _seconds(clock))
    print(f"started {after_sent:.2f} s after it was sent")
    assert 9.9 <= after_sent <= 60 and started - before >= 10


@wrong
def test_a_countdown_of_a_task(play: Play, clock: str) -> None:
    """Another try that a task asks for on a worker with a wrong clock comes in time."""
    scene = play("fair", CONTRAST_LEASE="30")
    with scene.clock(clock):
        scene.worker()
    scene.call("once_more.delay('again', 2)")
    wait_for(lambda: "again" in scene.said("end"))
    first, second = scene.times("start", "again")
    assert _is_off(first, by=clock)
    assert 1.9 <= second - first <= 60


@wrong
def test_a_countdown_of_a_stock_client(play: Play, clock: str) -> None:
    """A worker with a wrong clock adopts it; it is waited for by Redis's clock as well."""
    scene = play("fair", CONTRAST_LEASE="30")
    with scene.clock(clock):
        scene.worker()
    scene.call("say_and_send('later', countdown=10)", CONTRAST="stock")
    [sent] = scene.times("sent", "later")
    [started] = wait_for(lambda: scene.times("start", "later"), what="its start")
    assert _is_off(started, by=clock)
    after_sent = started - _seconds(clock) - sent
    print(f"started {after_sent:.2f} s after it was sent")
    assert 9.9 <= after_sent <= 20.0


def test_stock_does_not_wait_for_a_caller_that_is_behind(play: Play) -> None:
    """Its ETA is a time of the caller's clock, which a worker holds against its own."""
    scene = play("stock", CONTRAST_LEASE="3600")
    scene.worker()
    with scene.clock("-120s"):
        scene.call("say_and_send('later', countdown=20)")
    [started] = wait_for(lambda: scene.times("start", "later"), seconds=10)
    [sent] = scene.times("sent", "later")
    assert started - (sent + 120) < 10


def _seconds(clock: str) -> int:
    return int(clock.rstrip("s") or 0)


def _is_off(written: float, *, by: str) -> bool:
    """Say whether a time of just now was written by a clock that is wrong by so much."""
    return abs(written - _seconds(by) - time.time()) < 30
