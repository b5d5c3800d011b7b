"""fleet/pool over real children: who is free takes the next job; each is done once, as a whole."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any

import pytest
from billiard.exceptions import SoftTimeLimitExceeded, Terminated, WorkerLostError

from fleet.pool.slots import MAX_AHEAD
from tests.fleet.pool.running import (
    A_MOMENT,
    FREE,
    Running,
    length,
    nap,
    pool,
    repeated,
    two_children,
)
from tests.waiting import wait_for

__all__ = ["pool"]

LARGE = 3_000_000
# As by `--max-tasks-per-child 1`, and by `--max-memory-per-child 1`.
one_job_a_child = pytest.mark.parametrize(
    "pool", [{"maxtasksperchild": 1}, {"max_memory_per_child": 1}], indirect=True
)


def test_jobs_and_answers_of_any_length_arrive_whole(pool: Running) -> None:
    """Also those that neither a packet nor a pipe takes as a whole, in any mixture."""
    sizes = [0, 1, select.PIPE_BUF, 40_000, LARGE, 7]
    for size in sizes:
        pool.call(length, "x" * size)
        pool.call(repeated, "y", size)
    answers = pool.settle(2 * len(sizes))
    assert [answer for answer in answers if isinstance(answer, int)] == sizes
    assert [len(answer) for answer in answers if isinstance(answer, str)] == sizes


def test_an_answer_that_cannot_be_sent_is_an_error(pool: Running) -> None:
    """The child lives, and does the next job."""
    pids = pool.pids
    pool.call(memoryview, b"abc")
    assert "memory" in str(pool.error())
    pool.call(length, "abc")
    assert (pool.settle(1), pool.pids) == ([3], pids)


def test_a_job_with_more_file_descriptors_than_its_child_has_comes_again(pool: Running) -> None:
    """A long job is in a file; a child at its limit cannot take it, and another time it can."""
    pool.call(_with_no_descriptor_for, 1.0)
    pool.settle(1)
    pool.call(length, "x" * LARGE)
    assert pool.settle(2)[-1] == LARGE
    assert not pool.errors


def _with_no_descriptor_for(seconds: float) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    signal.signal(
        signal.SIGALRM,
        lambda *_: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
    )
    signal.setitimer(signal.ITIMER_REAL, seconds)


def test_a_start_is_told_while_the_job_runs_with_its_true_time(pool: Running) -> None:
    """`inspect active` and time limits need it; its child sends no message for that."""
    told: list[Any] = []
    before = time.monotonic()
    job = pool.begin(nap, 60, accept_callback=lambda *start: told.append(start))
    [(pid, began_at)] = told
    assert pid == pool.pids[0] and before <= began_at <= time.monotonic()
    assert job.is_running


@two_children
def test_no_job_waits_behind_a_long_one_while_a_child_is_free(pool: Running) -> None:
    """Whoever is free takes the next one."""
    pool.begin(nap, 60)
    for _ in range(50):
        pool.call(length, "ab", expected=A_MOMENT)
    assert pool.settle(50) == [2] * 50


@one_job_a_child
def test_a_child_that_has_reached_its_limit_is_replaced_after_its_job(pool: Running) -> None:
    """By jobs or by memory; and no job is lost with it."""
    for text in ("a", "ab", "abc"):
        pool.call(os.getpid)
        pool.call(length, text)
    answers = pool.settle(6)
    assert len({answer for answer in answers if answer > 3}) == 3
    assert {1, 2, 3} <= set(answers)


# --- slots ------------------------------------------------------------------------------


def begin_and_release(pool: Running, seconds: float, *, expected: float = A_MOMENT) -> bool:
    job = pool.call(nap, seconds, expected=expected)
    free = pool.slots.value
    pool.processes.lend_slot(job)
    return bool(pool.slots.value > free)


def test_short_jobs_wait_in_the_pool_beyond_its_slots(pool: Running) -> None:
    """So many, and no more: the others keep their slots until these have ended."""
    begin_and_release(pool, 0.5)
    early = [begin_and_release(pool, 0.0, expected=0.0001) for _ in range(MAX_AHEAD + 4)]
    assert early[0] and not early[-1]
    assert pool.slots.value == FREE - early.count(False)
    pool.settle(len(early) + 1)
    assert pool.slots.value == FREE


@pytest.mark.parametrize("expected", [1.0, float("inf")])
def test_a_job_that_may_be_long_keeps_its_slot(pool: Running, expected: float) -> None:
    """And with it, no other one waits in the pool."""
    assert not begin_and_release(pool, 0.2, expected=expected)
    assert not begin_and_release(pool, 0.0)
    pool.settle(2)
    assert pool.slots.value == FREE


def test_slots_are_counted_when_a_child_dies(pool: Running) -> None:
    """A slot that was released early is not released again."""
    job = pool.begin(nap, 60, expected=A_MOMENT)
    for _ in range(3):
        begin_and_release(pool, 0.0)
    os.kill(job.child.pid, signal.SIGKILL)
    pool.settle(3)
    assert pool.is_lost() and pool.slots.value == FREE


def test_a_job_that_no_child_has_read_can_be_withdrawn(pool: Running) -> None:
    """The others stay in their order; a job that was read stays its child's."""
    told: list[str] = []
    first = pool.begin(nap, 1.0)
    second, third, fourth = (pool.call(length, "a" * number) for number in (1, 2, 3))
    third.on_withdrawn = lambda: told.append("withdrawn")
    assert pool.processes.withdraw(third) and not pool.processes.withdraw(first)
    assert (told, pool.processes.has(second)) == (["withdrawn"], True)
    assert not pool.processes.withdraw(third) and not pool.processes.withdraw(None)
    assert pool.settle(3) == [None, 1, 3]
    assert fourth.ready()


def test_each_job_is_done_once_while_all_are_read_back(pool: Running) -> None:
    """Either the pool or a child has it: the socket gives each packet to one reader."""
    for number in range(40):
        for _ in range(20):
            pool.call(length, "a" * number, expected=A_MOMENT)
        pool.processes.recall()
        pool.settle(20 * (number + 1))
    assert sorted(pool.answers) == sorted([*range(40)] * 20)


# --- limits, and what operators do ------------------------------------------------------


def deaf_nap(seconds: float) -> None:
    """A job that ignores SIGTERM, and takes this long."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(seconds)


@pytest.mark.parametrize("function", [nap, deaf_nap])
def test_a_hard_limit_ends_the_job_and_its_child(pool: Running, function: Any) -> None:
    """Its caller learns it once, by the callback for limits; a child without ears is killed."""
    told: list[Any] = []
    limits = {"timeout": 0.5, "timeout_callback": lambda **facts: told.append(facts)}
    job = pool.call(function, 60, **limits)
    [pid] = pool.pids
    pool.turn_until(job.ready)
    pool.turn_until(lambda: pool.pids and pool.pids != [pid])
    assert (told, pool.errors) == ([{"soft": False, "timeout": 0.5}], [])
    assert pool.slots.value == FREE


def test_a_soft_limit_raises_in_the_job(pool: Running) -> None:
    """And its child lives."""
    pids, told = pool.pids, []
    pool.call(nap, 60, soft_timeout=0.5, timeout_callback=lambda **facts: told.append(facts))
    assert isinstance(pool.error(), SoftTimeLimitExceeded)
    assert (told, pool.pids) == ([{"soft": True, "timeout": 0.5}], pids)


@pytest.mark.parametrize("limit", ["timeout", "soft_timeout"])
def test_time_limits_begin_when_a_child_has_read_the_job(pool: Running, limit: str) -> None:
    """A child that is stopped, or waits for a processor, has not begun the task."""
    [pid] = pool.pids
    os.kill(pid, signal.SIGSTOP)
    job = pool.call(length, "abc", **{limit: 0.5})
    pool.turn_for(1.5)
    assert not job.ready()
    os.kill(pid, signal.SIGCONT)
    assert (pool.settle(1), pool.errors) == ([3], [])


def test_a_terminated_job_takes_no_other_along(pool: Running) -> None:
    """Those behind it go to the next child; a child that has gone on is left alone."""
    first = pool.begin(nap, 0.3)
    second, third = pool.call(nap, 60), pool.call(length, "ab")
    [pid] = pool.pids
    wait_for(lambda: not first.is_running, what="the next job")
    pool.processes.terminate_job(pid, signal.SIGKILL)
    assert pool.settle(1) == [None], "it is the first that was meant"
    pool.turn_until(lambda: second.child)
    pool.processes.terminate_job(pid, signal.SIGKILL)
    assert pool.settle(2) == [None, 2]
    assert isinstance(pool.error(), Terminated) and third.ready()


def test_a_pool_grows_and_shrinks(pool: Running) -> None:
    """By idle children only; and Celery is told when there are none."""
    busy = pool.begin(nap, 60)
    pool.tasks.grow(2)
    assert pool.tasks.num_processes == 3
    pool.turn_until(lambda: len(pool.pids) == 3)
    pool.tasks.shrink(2)
    pool.turn_until(lambda: pool.pids == [busy.child.pid])
    with pytest.raises(ValueError, match="busy"):
        pool.tasks.shrink(1)
    assert pool.tasks.num_processes == 1


def test_a_restart_replaces_each_child_after_its_job(pool: Running) -> None:
    """Nothing is lost."""
    pids = pool.pids
    pool.begin(nap, 0.5)
    pool.tasks.restart()
    pool.call(length, "abc")
    assert pool.settle(2) == [None, 3]
    pool.turn_until(lambda: pool.pids and pool.pids != pids)
    assert not pool.errors


def test_statistics_have_the_jobs_of_each_child(pool: Running) -> None:
    """As `inspect stats` of Celery's own pool."""
    pool.call(length, "abc")
    pool.settle(1)
    stats = pool.tasks.info
    assert (stats["max-concurrency"], stats["writes"]["raw"]) == (1, "1")


# --- a lost connection, and the end -----------------------------------------------------


def test_a_lost_connection_drops_what_no_child_has_read(pool: Running) -> None:
    """What a child has goes on in its slot; the others go back."""
    returned: list[str] = []
    kept = pool.begin(nap, 1.0)
    waiting = pool.call(length, "ab")
    waiting.give_back = lambda: returned.append("given back")
    pool.slots.clear()  # as Celery does
    pool.tasks.flush()
    assert (returned, pool.processes.has(kept)) == (["given back"], True)
    assert not pool.processes.has(waiting)
    assert pool.slots.value == 99
    pool.settle(1)
    assert pool.slots.value == 100


def test_a_pool_that_stops_gives_back_what_no_child_has_read(pool: Running) -> None:
    """And what a child has ends first, with its outcome."""
    returned: list[str] = []
    pool.begin(nap, 1.0)
    for _ in range(2):
        pool.call(length, "ab").give_back = lambda: returned.append("given back")
    pool.tasks.stop()
    assert (pool.answers, returned) == ([None], ["given back"] * 2)
    pool.tasks.start()  # for the end of the scene


def test_a_job_has_its_limits_also_while_the_pool_stops(pool: Running) -> None:
    """Without an event loop."""
    limits = {"timeout": 1.0, "timeout_callback": lambda **facts: pool.answers.append(facts)}
    pool.begin(nap, 60, **limits)
    pool.tasks.stop()
    assert pool.answers == [{"soft": False, "timeout": 1.0}]
    pool.tasks.start()


def test_a_job_that_does_not_stop_is_killed_also_while_the_pool_stops(pool: Running) -> None:
    """When its grace has passed, as if it was terminated."""
    pool.begin(nap, 60).kill_at = time.monotonic() + 0.5
    pool.tasks.stop()
    assert isinstance(pool.error(), Terminated)
    pool.tasks.start()


def test_a_pool_that_is_terminated_ends_its_jobs_as_lost(pool: Running) -> None:
    """At once."""
    pool.begin(nap, 60)
    pool.tasks.terminate()
    assert isinstance(pool.error(), WorkerLostError)
    pool.tasks.start()
