"""fleet/pool/pool.py over real children: jobs are written, and results read, at once and whole."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from billiard.exceptions import WorkerLostError
from billiard.pool import CLOSE
from celery import current_app
from celery.concurrency import asynpool
from celery.concurrency.prefork import TaskPool
from celery.worker import state as worker_state
from kombu.asynchronous import Hub, set_event_loop
from kombu.asynchronous.semaphore import LaxBoundedSemaphore

from fleet.pool import lookahead
from fleet.pool.lookahead import MAX_QUEUED
from fleet.pool.pipes import NONE, LastRead, has_read
from fleet.pool.pool import Pool
from tests.waiting import wait_for

LARGE = 200_000
A_MOMENT = 0.001
PATIENCE_SECONDS = 300

# As by `--max-tasks-per-child 1`, and by `--max-memory-per-child 1`, of which only the child knows.
one_job_a_child = pytest.mark.parametrize("pool", [{"maxtasksperchild": 1}], indirect=True)
two_children = pytest.mark.parametrize("pool", [{"children": 2}], indirect=True)
first_come = pytest.mark.parametrize(
    "pool", [{"sched_strategy": asynpool.SCHED_STRATEGY_FCFS}], indirect=True
)
too_large = pytest.mark.parametrize("pool", [{"max_memory_per_child": 1}], indirect=True)


class Running:
    """A pool of a child or more, and the loop in which it works."""

    def __init__(self, *, children: int = 1, **options: Any) -> None:
        self.hub = Hub()
        set_event_loop(self.hub)
        app = current_app._get_current_object()
        options |= {"threads": False, "putlocks": False, "initargs": (app, "w1@here")}
        self.tasks = TaskPool(children, app=app, **options)
        self.tasks.Pool = Pool
        self.tasks.start()
        self.tasks.register_with_event_loop(self.hub)
        self._loop = self.hub.create_loop()
        self.answers: list[Any] = []
        self._until = time.monotonic() + PATIENCE_SECONDS
        while len(self.children._all_inqueues) < children:
            self.turn()

    @property
    def children(self) -> Any:
        return self.tasks._pool

    def call(self, function: Any, *args: Any, **options: Any) -> Any:
        return self.tasks.apply_async(function, args, callback=self.answers.append, **options)

    def turn(self) -> None:
        assert time.monotonic() < self._until, "the loop turned in vain"
        self.hub.call_later(0.02, lambda: None)
        next(self._loop)

    def settle(self, count: int) -> list[Any]:
        """Turn until there are this many answers."""
        while len(self.answers) < count:
            self.turn()
        return self.answers


@pytest.fixture
def pool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    # Between two calls of a test this process may wait for a processor, and for long.
    monkeypatch.setattr(lookahead, "AHEAD_SECONDS", 30)
    running = Running(**getattr(request, "param", {}))
    yield running
    for child in running.children._pool:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)  # one that ends by itself takes a second
    running.tasks.terminate()
    set_event_loop(None)


def length(text: str) -> int:
    """A job whose arguments may be larger than a pipe."""
    return len(text)


def repeated(text: str, times: int) -> str:
    """A job whose answer may be larger than a pipe."""
    return text * times


def nap(seconds: float) -> None:
    """A job that takes this long."""
    time.sleep(seconds)


def with_slots(pool: Running) -> LaxBoundedSemaphore:
    """Give the pool a semaphore of 100 slots of which 50 are free; return it."""
    semaphore = LaxBoundedSemaphore(100)
    semaphore.value = 50
    pool.children._putlock._semaphore = semaphore
    return semaphore


def until_read(job: Any) -> None:
    """Return when its child has come to this job."""
    while not has_read(job._write_to, job):
        time.sleep(0.01)


def test_a_free_child_has_a_job_before_the_loop_turns(pool: Running) -> None:
    """It was written when it was handed in, not a turn later."""
    job = pool.call(length, "abc")
    assert not pool.children.outbound_buffer and job._write_to is not None
    assert pool.settle(1) == [3]


def test_a_busy_child_has_one_job(pool: Running) -> None:
    """A second waits here, where it can be taken back, until the first has ended."""
    pool.call(length, "a")
    waiting = pool.call(length, "ab")
    assert list(pool.children.outbound_buffer) == [waiting]
    assert pool.settle(2) == [1, 2]


def test_jobs_and_answers_of_any_length_arrive_whole(pool: Running) -> None:
    """Also those that a pipe takes in several pieces, in any mixture."""
    for size in (0, 1, select.PIPE_BUF, LARGE, 7):
        pool.call(length, "x" * size)
        pool.call(repeated, "y", size)
    answers = pool.settle(10)
    assert [answer for answer in answers if isinstance(answer, int)] == [
        *(0, 1, select.PIPE_BUF, LARGE, 7)
    ]
    assert [len(answer) for answer in answers if isinstance(answer, str)] == [
        *(0, 1, select.PIPE_BUF, LARGE, 7)
    ]


def _is_readable(descriptor: int) -> bool:
    # Not `select`, which takes no descriptor past 1,023: the tests before have opened many.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def test_all_that_a_child_has_said_is_read_in_one_turn(pool: Running) -> None:
    """It took a short job and reports its outcome: two messages, both here by now."""
    pool.call(length, "abc")
    child = next(iter(pool.children._fileno_to_outq))
    wait_for(lambda: _is_readable(child), what="a word of the child")
    select.select([], [], [], 0.2)
    for _ in range(3):
        # The first turns may be those of the write and of the timer.
        pool.turn()
        if pool.answers:
            break
    assert len(pool.answers) == 1


def test_a_child_that_dies_takes_nothing_along(pool: Running) -> None:
    """Its pipe is read to the end, another child is started, and the pool continues."""
    pool.call(length, "abc")
    pool.settle(1)
    [child] = pool.children._pool
    child.terminate()
    while pool.children._pool == [child] or not pool.children._all_inqueues:
        pool.turn()
    pool.call(length, "abcd")
    assert pool.settle(2) == [3, 4]


@one_job_a_child
def test_a_child_is_sent_nothing_after_its_last_job(pool: Running) -> None:
    """It is about to end: the job would wait for that, and come back."""
    pool.call(length, "a")
    pool.settle(1)
    waiting = pool.call(length, "ab")
    assert list(pool.children.outbound_buffer) == [waiting]
    assert waiting._write_to is None
    assert pool.settle(2) == [1, 2]


@too_large
def test_what_comes_back_from_a_child_is_no_child_s(pool: Running) -> None:
    """The next one has a pipe of the same number, and was not sent it."""
    pool.call(length, "a")
    pool.settle(1)
    job = pool.call(length, "ab")
    assert job._write_to is not None
    while job not in pool.children.outbound_buffer:
        pool.turn()
    assert (job._write_to, job._scheduled_for) == (None, None)
    assert pool.settle(2) == [1, 2]


@pytest.mark.parametrize(("size", "at_once"), [(1, True), (LARGE, False)])
def test_a_child_says_that_it_took_a_job_only_when_its_pool_cannot_know(
    pool: Running, size: int, at_once: bool
) -> None:
    """A job that a pipe takes as a whole is taken when it is written; of another, a part is."""
    job = pool.call(length, "x" * size)
    assert job._accepted is at_once
    assert pool.settle(1) == [size]
    assert job._accepted and job._worker_pid == pool.children._pool[0].pid


# --- ahead of the end of a short job ----------------------------------------------------


def test_behind_a_short_job_its_child_has_the_next(pool: Running) -> None:
    """It does them without an acceptance; each counts as taken when the one before has ended."""
    first = pool.call(nap, 0.01, expected=A_MOMENT)
    ahead = [pool.call(length, "a" * number, expected=A_MOMENT) for number in range(MAX_QUEUED)]
    assert not pool.children.outbound_buffer
    assert {job._write_to for job in ahead} == {first._write_to}
    assert first._accepted and not any(job._accepted for job in ahead)
    last = pool.call(length, "abcdef", expected=A_MOMENT)
    assert list(pool.children.outbound_buffer) == [last], "so many are ahead, and no more"
    assert pool.settle(MAX_QUEUED + 2) == [None, *range(MAX_QUEUED), 6]
    assert ahead[0]._time_accepted > first._time_accepted
    assert [job._time_accepted for job in ahead] == sorted(job._time_accepted for job in ahead)


def test_behind_a_job_that_is_not_short_none_goes_ahead(pool: Running) -> None:
    """Also when the long job itself was sent ahead."""
    pool.call(nap, 0.1, expected=A_MOMENT)
    pool.call(length, "a")
    waiting = pool.call(length, "ab", expected=A_MOMENT)
    assert list(pool.children.outbound_buffer) == [waiting]
    assert pool.settle(3) == [None, 1, 2]


def test_behind_jobs_that_take_long_together_none_waits_in_their_child(
    pool: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is short, and yet the last one would wait for longer than it may."""
    monkeypatch.setattr(lookahead, "SHORT_SECONDS", 20)
    first = pool.call(nap, 0.01, expected=15)
    second = pool.call(length, "a", expected=15)
    third = pool.call(length, "ab", expected=A_MOMENT)
    assert list(first._write_to.ahead) == [second]
    assert list(pool.children.outbound_buffer) == [third]
    assert pool.settle(3) == [None, 1, 2]


def test_behind_a_job_of_unknown_length_none_waits_in_its_child(pool: Running) -> None:
    """It could be long; a job that waits in the pool goes to the first free child."""
    pool.call(nap, 0.01)
    waiting = pool.call(length, "ab", expected=A_MOMENT)
    assert list(pool.children.outbound_buffer) == [waiting]
    assert pool.settle(2) == [None, 2]


def test_behind_a_job_that_turns_out_long_none_waits_in_its_child(
    pool: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are taken back, in their order, and can be handed back or go to another child."""
    monkeypatch.setattr(lookahead, "AHEAD_SECONDS", 1.0)
    pool.call(nap, 3.0, expected=A_MOMENT)
    waiting = [pool.call(length, "a" * number, expected=A_MOMENT) for number in range(3)]
    assert not pool.children.outbound_buffer
    while not pool.children.outbound_buffer:
        pool.turn()
    assert pool.answers == [], "before its end"
    assert list(pool.children.outbound_buffer) == waiting
    assert not any(job._write_to or job._accepted for job in waiting)
    assert pool.settle(4) == [None, 0, 1, 2]


def test_a_job_that_its_child_has_read_is_not_taken_back(pool: Running) -> None:
    """Either the pool or the child has a job: the pipe gives each to the first reader."""
    for number in range(40):
        for _ in range(MAX_QUEUED):
            pool.call(length, "a" * number, expected=A_MOMENT)
        pool.children.recall()
        pool.settle(MAX_QUEUED * (number + 1))
    assert sorted(pool.answers) == sorted([*range(40)] * MAX_QUEUED)


def test_behind_an_unread_job_nothing_is_taken_back(pool: Running) -> None:
    """It is that job which one would get: the first in the pipe."""
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGSTOP)
    pool.call(length, "a", expected=A_MOMENT)
    pool.call(length, "ab")
    pool.children.recall()
    assert not pool.children.outbound_buffer
    os.kill(child.pid, signal.SIGCONT)
    assert pool.settle(2) == [1, 2]


def while_words_are_heard(pool: Running, act: Callable[[], None]) -> None:
    """Do something when a short job has ended, behind which a longer one was waiting."""
    first = pool.tasks.apply_async(length, ("",), callback=lambda _answer: act(), expected=A_MOMENT)
    pool.call(nap, 0.5, expected=A_MOMENT)
    while not first.ready():
        pool.turn()


def test_what_gathers_while_words_are_heard_is_written_at_once(pool: Running) -> None:
    """As soon as all messages are read, with one call."""
    seen: list[list[int]] = []

    def act() -> None:
        for text in ("a", "ab", "abc"):
            pool.call(length, text, expected=A_MOMENT)
        seen.append([len(jobs) for jobs in pool.children._batch.values()])

    while_words_are_heard(pool, act)
    assert (seen, pool.children._batch) == ([[3]], None)
    assert not pool.children.outbound_buffer
    assert sorted(filter(None, pool.settle(4))) == [1, 2, 3]


def test_what_gathers_while_words_are_heard_is_taken_back_too(pool: Running) -> None:
    """When the pool closes or the job ends, in the middle of it."""
    gathered: list[Any] = []
    waiting: list[Any] = []

    def act() -> None:
        until_read(pool.children._pool[0].current)
        gathered.extend(pool.call(length, text, expected=A_MOMENT) for text in ("a", "ab"))
        pool.children.recall()
        waiting.extend(pool.children.outbound_buffer)

    while_words_are_heard(pool, act)
    assert gathered and waiting == gathered
    assert pool.settle(3) == [None, 1, 2]


def test_what_a_pipe_has_no_room_for_waits_here(
    pool: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several jobs it takes the first ones, each as a whole."""
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, texts: writev(fd, texts[:1]))
    gathered: list[Any] = []

    def act() -> None:
        gathered.extend(pool.call(length, text, expected=A_MOMENT) for text in ("a", "ab", "abc"))

    while_words_are_heard(pool, act)
    assert list(pool.children.outbound_buffer) == gathered[1:]
    assert list(pool.children._pool[0].ahead) == gathered[:1]
    assert sorted(filter(None, pool.settle(4))) == [1, 2, 3]


@two_children
def test_a_free_child_gets_what_waits_behind_another_s_job(pool: Running) -> None:
    """No child is idle while a job waits, for however short a time."""
    slow = pool.call(nap, 1.0, expected=A_MOMENT)
    quick = pool.call(length, "a", expected=A_MOMENT)
    behind = [pool.call(length, "ab", expected=A_MOMENT) for _ in range(4)]
    ran_by = [job._write_to for job in (slow, quick, slow, quick)]
    assert [job._write_to for job in behind] == ran_by, "who has least ahead, and began first"
    assert pool.settle(5) == [1, 2, 2, 2, 2]
    assert {job._write_to for job in behind} == {quick._write_to}


def test_what_a_child_never_read_goes_to_the_next(pool: Running) -> None:
    """Its death is no fault of theirs; the job that it had read is lost with it."""
    lost: list[Any] = []
    untold: list[str] = []
    first = pool.tasks.apply_async(nap, (60,), error_callback=lost.append, expected=A_MOMENT)
    for text in ("ab", "abc", "abcd"):
        behind = pool.call(length, text, expected=A_MOMENT)
        behind.on_unread = lambda: untold.append("never accepted, so nobody to tell")
    until_read(first)
    os.kill(first._worker_pid, signal.SIGKILL)
    assert sorted(pool.settle(3)) == [2, 3, 4]
    [einfo] = lost
    assert isinstance(getattr(einfo.exception, "exc", einfo.exception), WorkerLostError)
    assert not untold


def test_what_counts_as_taken_and_was_never_read_is_taken_by_the_next(pool: Running) -> None:
    """A stopped child receives bytes in its pipe, and reads nothing."""
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGSTOP)
    told: list[str] = []
    job = pool.call(length, "abc")
    job.on_unread = lambda: told.append("it has not begun")
    assert job._accepted and job._worker_pid == child.pid
    os.kill(child.pid, signal.SIGKILL)
    assert pool.settle(1) == [3]
    assert job._worker_pid != child.pid and told == ["it has not begun"]


def test_a_dead_child_is_replaced_at_once(pool: Running) -> None:
    """Its pipe closes before it can be reaped; without this the pool would look only after 5 s."""
    [child] = pool.children._pool
    pool.hub.timer.clear()  # among others of the look each 5 s
    pool.children._event_process_exit(pool.hub, child)
    os.kill(child.pid, signal.SIGKILL)
    while pool.children._pool == [child]:
        pool.turn()


def test_an_end_frees_a_slot_only_when_its_child_has_room(
    pool: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs behind it may be too long together, though each is short."""
    monkeypatch.setattr(lookahead, "SHORT_SECONDS", 20)
    semaphore = with_slots(pool)
    for seconds, expected in ((0.05, A_MOMENT), (0.3, 15), (0.0, 15)):
        semaphore.value -= 1
        job = pool.call(nap, seconds, expected=expected)
        semaphore.value += pool.children.release_early(job)
    assert semaphore.value == 49
    pool.settle(1)
    assert semaphore.value == 49
    pool.settle(3)
    assert semaphore.value == 50


def test_slots_are_counted_whatever_becomes_of_their_jobs(pool: Running) -> None:
    """A slot that was freed ahead is not freed again at the end, nor when the child has died."""
    semaphore = with_slots(pool)

    def begin(seconds: float) -> Any:
        semaphore.value -= 1
        job = pool.call(nap, seconds, expected=A_MOMENT)
        semaphore.value += pool.children.release_early(job)
        return job

    for more in (1, MAX_QUEUED, MAX_QUEUED + 2):
        begin(0.05)
        for _ in range(more):
            begin(0.0)
        held = max(0, more - MAX_QUEUED + 1)
        assert semaphore.value == 50 - held, "those ahead are in the slots of who is before them"
        pool.settle(len(pool.answers) + 1 + more)
        assert semaphore.value == 50
    job = begin(60)
    for _ in range(3):
        begin(0.0)
    until_read(job)
    os.kill(job._worker_pid, signal.SIGKILL)
    pool.settle(len(pool.answers) + 3)
    assert semaphore.value == 50
    # And one that was never read keeps its own, or has given it away, until it has ended.
    [child] = pool.children._pool
    os.kill(child.pid, signal.SIGSTOP)
    begin(0.0)
    os.kill(child.pid, signal.SIGKILL)
    pool.settle(len(pool.answers) + 1)
    assert semaphore.value == 50


def test_a_job_that_was_taken_back_frees_no_slot(pool: Running) -> None:
    """It waits here: nothing can wait behind it."""
    until_read(pool.call(nap, 2.0, expected=A_MOMENT))
    ahead = pool.call(length, "ab", expected=A_MOMENT)
    pool.children.recall()
    assert not pool.children.release_early(ahead) and not pool.children.release_early(None)
    assert pool.settle(2) == [None, 2]


def test_what_waits_behind_one_that_went_on_is_taken_back(pool: Running) -> None:
    """Although the pool does not know yet that the first has ended."""
    first = pool.call(length, "a", expected=A_MOMENT)
    second = pool.call(nap, 0.5, expected=A_MOMENT)
    third = pool.call(length, "abc")
    while not has_read(first._write_to, second):
        time.sleep(0.01)
    pool.children.recall()
    assert list(pool.children.outbound_buffer) == [third]
    assert pool.settle(3) == [1, None, 3]


@first_come
def test_where_children_are_written_to_at_work_nothing_goes_ahead(pool: Running) -> None:
    """`-O fast`: a job that is taken back could be another one than was meant."""
    jobs = [pool.call(nap, 0.05, expected=A_MOMENT), pool.call(length, "ab", expected=A_MOMENT)]
    assert not jobs[0]._accepted
    assert pool.settle(2) == [None, 2]
    assert all(job._accepted for job in jobs)


def test_a_child_that_has_read_nothing_has_not_read_the_first_job() -> None:
    """The first job's number is 0, as is fresh memory."""
    assert LastRead().job == NONE


def test_a_job_that_was_revoked_ahead_frees_its_slot(pool: Running) -> None:
    """Celery frees it with a dead child, and here no child has died."""
    semaphore = with_slots(pool)
    until_read(pool.call(nap, 1.0, expected=A_MOMENT))
    ahead = pool.call(length, "ab", correlation_id="revoked-ahead")
    worker_state.revoked.add("revoked-ahead")
    pool.children.recall()
    assert ahead.ready() and semaphore.value == 51
    assert pool.settle(1) == [None]


def test_what_was_ended_and_not_heard_of_is_not_done_again(pool: Running) -> None:
    """Its child has read the job behind it; the child's own report is lost."""
    lost: list[Any] = []
    first = pool.tasks.apply_async(nap, (60,), error_callback=lost.append, expected=A_MOMENT)
    behind = pool.call(length, "ab")
    until_read(first)
    [child] = pool.children._pool
    child.last_read.note(behind._job)
    os.kill(child.pid, signal.SIGKILL)
    while not lost:
        pool.turn()
    assert first not in pool.children.outbound_buffer


def test_who_is_terminated_takes_nobody_along(pool: Running) -> None:
    """The job behind it goes to the next child; a child that has gone on is left alone."""
    pool.call(nap, 0.01, expected=A_MOMENT)
    second = pool.call(nap, 60, expected=A_MOMENT)
    behind = pool.call(length, "ab")
    until_read(second)
    [child] = pool.children._pool
    pool.children.terminate_job(child.pid, signal.SIGKILL)
    assert not getattr(child, "_job_terminated", False), "it is the first that was meant"
    assert pool.settle(1) == [None]
    pool.children.terminate_job(child.pid, signal.SIGKILL)
    assert pool.settle(2) == [None, 2]
    assert second.ready() and behind._worker_pid != child.pid


def test_a_closed_pool_takes_nothing_back(pool: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would write it to no child; and a thread of Celery's fires timers until the end."""
    monkeypatch.setattr(lookahead, "AHEAD_SECONDS", 1.0)
    until_read(pool.call(nap, 3.0, expected=A_MOMENT))
    ahead = pool.call(length, "ab")
    pool.children._state = CLOSE
    time.sleep(1.5 * lookahead.AHEAD_SECONDS)  # until the timer would be due
    pool.children._recall_long()
    pool.children.recall()  # no request is sent into the pipe of a child that may end
    assert ahead not in pool.children.outbound_buffer
    assert pool.settle(2) == [None, 2]


def test_what_no_child_was_sent_goes_back_at_the_end(pool: Running) -> None:
    """Also a recalled job: a closed pool writes nothing more."""
    returned: list[Any] = []
    until_read(pool.call(nap, 60, expected=A_MOMENT))
    ahead, waiting = pool.call(length, "ab"), pool.call(length, "abc")
    for job in (ahead, waiting):
        job.give_back = partial(returned.append, job)
    pool.children.close()
    assert returned == [ahead, waiting]
    assert not pool.children.outbound_buffer and len(pool.children._cache) == 1
