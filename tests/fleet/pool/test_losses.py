"""fleet/pool/losses.py over real children: a job is lost only if its process has it no more."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fleet.pool import losses
from fleet.pool.child import state_of
from fleet.pool.processes import LOOK_SECONDS
from tests.fleet.pool.running import A_MOMENT, FREE, Running, length, nap, pool, two_children
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

__all__ = ["pool"]

LARGE = 200_000


def stop(pid: int) -> None:
    """Stop a process; return when it has stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: state_of(pid) == "T", what="the stop")


def write_and_nap(path: str) -> str:
    """Write a line, and take a minute."""
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(60)
    return path


def test_a_killed_child_takes_its_own_job_along_and_no_other(pool: Running) -> None:
    """It is replaced at once, and the next one does what was behind."""
    job = pool.begin(nap, 60)
    for text in ("a", "ab", "abc"):
        pool.call(length, text)
    os.kill(job.child.pid, signal.SIGKILL)
    assert pool.settle(3) == [1, 2, 3]
    assert pool.is_lost() and pool.slots.value == FREE


@two_children
def test_children_that_die_together_lose_their_jobs_once(pool: Running, tmp_path: Path) -> None:
    """No job is started again."""
    starts = tmp_path / "starts"
    for _ in range(2):
        pool.call(write_and_nap, str(starts))
    wait_for(lambda: starts.exists() and len(starts.read_text().splitlines()) == 2)
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    pool.turn_until(lambda: len(pool.errors) == 2)
    pool.call(length, "abc")
    assert pool.settle(1) == [3]
    assert len(starts.read_text().splitlines()) == 2 == len(pool.errors)


def test_a_result_that_a_child_wrote_before_it_died_is_read(pool: Running) -> None:
    """Whichever of the two the main process notices first."""
    for _ in range(3):
        pool.call(os.getpid)
        [pid] = pool.settle(1)
        pool.answers.clear()
        job = pool.call(length, "abc")
        wait_for(lambda: _has_written(pool))
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        pool.tasks.maintain_pool()  # before the loop reads the result
        assert (pool.answers, pool.errors, job.ready()) == ([3], [], True)
        pool.answers.clear()


def _has_written(pool: Running) -> bool:
    import select

    descriptors = [fd for fd in pool.hub.readers if os.path.exists(f"/proc/self/fd/{fd}")]
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def test_a_job_whose_child_another_library_has_reaped_is_lost(pool: Running) -> None:
    """The exit status is gone, and billiard takes the child for alive."""
    job = pool.begin(nap, 60)
    os.kill(job.child.pid, signal.SIGKILL)
    assert os.waitpid(job.child.pid, 0)[0] == job.child.pid
    assert pool.is_lost() and pool.slots.value == FREE
    pool.call(length, "abc")
    assert pool.settle(1) == [3]


def test_a_job_that_a_dying_child_has_read_is_done_by_the_next(pool: Running) -> None:
    """It died before it could note that, so the job has not begun."""
    [child] = pool.processes.children
    stop(child.pid)
    pool.call(length, "abc")
    # What the child does first, in its place.
    pool.processes.socket.read()
    os.kill(child.pid, signal.SIGKILL)
    assert (pool.settle(1), pool.errors) == ([3], [])


@two_children
@pytest.mark.parametrize("has_died", [True, False])
def test_a_job_that_a_child_is_about_to_note_is_not_sent_again(
    pool: Running, has_died: bool
) -> None:
    """However often the pool looks, and although another child has died: that one may go on.

    It may sleep before it notes the job: a thread of a task holds the interpreter.
    """
    one, other = pool.pids
    for pid in (one, other):
        stop(pid)
    job = pool.call(length, "abc")
    pool.processes.socket.read()
    if has_died:
        os.kill(other, signal.SIGKILL)
    else:
        for pid in (one, other):
            os.kill(pid, signal.SIGCONT)
    pool.turn_for(4 * LOOK_SECONDS)
    assert not job.ready()
    if has_died:
        os.kill(one, signal.SIGCONT)
        assert pool.settle(1) == [3], "in this scene it does not have the job"


def test_a_job_that_runs_is_not_lost(pool: Running) -> None:
    """However often the pool looks, also when its child is stopped: its limit is for that."""
    job = pool.begin(nap, 60)
    os.kill(job.child.pid, signal.SIGSTOP)
    pool.turn_for(4 * LOOK_SECONDS)
    assert (pool.errors, pool.pids) == ([], [job.child.pid])


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "UNREAD_LOOKS", 2)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [("abc", False), ("a" * LARGE, False), ("abc", True)],
    ids=["small", "larger than a packet", "read, and not noted"],
)
def test_a_child_that_does_not_begin_is_replaced(
    hasty: None, pool: Running, text: str, is_read: bool
) -> None:
    """A stopped one never would; the next one does its job, once."""
    [pid] = pool.pids
    stop(pid)
    pool.call(length, text)
    if is_read:
        pool.processes.socket.read()  # in its place
    assert (pool.settle(1), pool.errors) == ([len(text)], [])
    assert pool.pids != [pid]


@two_children
def test_children_that_work_are_not_killed_while_jobs_wait(hasty: None, pool: Running) -> None:
    """Nothing reads the next job, and nothing has to."""
    pids = pool.pids
    for _ in range(2):
        pool.begin(nap, 5)
    pool.call(length, "abc")
    assert pool.settle(3)[-1] in (None, 3)
    assert (pool.pids, pool.errors) == (pids, [])


def fork_and_wait() -> int:
    """A job whose copy leaves its body after a while; return how many of them have."""
    if os.fork() == 0:
        time.sleep(0.5)
        return 0
    return 1


def test_a_copy_of_a_child_reads_no_job_and_writes_nothing(pool: Running) -> None:
    """Both belong to the child alone, also where no task's body ends the copy."""
    pids = pool.pids
    pool.call(fork_and_wait)
    pool.settle(1)
    for _ in range(20):
        pool.call(length, "abc")
        pool.turn_for(0.05)
    assert pool.settle(21) == [1, *[3] * 20]
    assert (pool.pids, pool.errors) == (pids, [])


def leave(how: str) -> Any:
    """A job that ends its process."""
    if how == "os._exit":
        os._exit(3)
    raise SystemExit(3)


@pytest.mark.parametrize("how", ["os._exit", "SystemExit"])
def test_a_job_that_ends_its_process_ends_alone(pool: Running, how: str) -> None:
    """The next one is done by another process."""
    pids = pool.pids
    pool.call(leave, how)
    pool.call(length, "abc")
    assert pool.settle(1) == [3]
    pool.error()
    assert pool.pids != pids


def note(path: str, number: int, seconds: float) -> int:
    """A job that notes its start."""
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    time.sleep(seconds)
    return number


@pytest.mark.parametrize("pool", [{"children": 4}], indirect=True)
def test_each_job_ends_once_while_children_are_killed(pool: Running, tmp_path: Path) -> None:
    """By its value, or by the death of its child; no body runs twice, and each slot is free."""
    starts, pick, count = tmp_path / "starts", random.Random(4711), 1_500
    lost: list[int] = []
    kills_at = time.monotonic()
    for number in range(count):
        job = pool.call(
            *(note, str(starts), number, pick.choice([0.0, 0.0, 0.002, 0.02])),
            error_callback=lambda _einfo, number=number: lost.append(number),
            expected=pick.choice([A_MOMENT, 1.0]),
        )
        pool.processes.lend_slot(job)
        pool.turn_until(lambda number=number: number - len(pool.answers) - len(lost) < 60)
        booted = sum(child.has_booted for child in pool.processes.children)
        if time.monotonic() > kills_at and booted > 1:  # on a slow machine, some must come to work
            kills_at = time.monotonic() + 0.1
            with suppress(ProcessLookupError):
                os.kill(pick.choice(pool.pids), signal.SIGKILL)
            pool.processes.recall()
    pool.turn_until(lambda: len(pool.answers) + len(lost) >= count)
    assert sorted([*pool.answers, *lost]) == list(range(count))
    begun = [int(line) for line in starts.read_text().splitlines()]
    assert len(begun) == len(set(begun)) and set(pool.answers) <= set(begun)
    assert pool.slots.value == FREE and lost


def scatter(count: int) -> int:
    """A job that forks, and whose process is killed; its copies leave the body later."""
    for _ in range(count):
        if os.fork() == 0:
            time.sleep(3)
            return 0
    os.kill(os.getpid(), signal.SIGKILL)
    return count


def test_copies_of_a_child_that_has_died_take_nothing(pool: Running) -> None:
    """They hold its end of the socket and the pipe that told of its end; the pool looks as well."""
    pool.call(scatter, 50)
    assert pool.is_lost() and pool.slots.value == FREE
    for _ in range(40):
        pool.call(length, "abc")
        pool.turn_for(0.1)
    assert pool.settle(40) == [3] * 40
    assert len(pool.errors) == 1
