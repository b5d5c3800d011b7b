"""fleet/pool.py over real children: jobs are written, and words are read, at once and whole."""

from __future__ import annotations

import select
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import current_app
from celery.concurrency.prefork import TaskPool
from kombu.asynchronous import Hub, set_event_loop

from fleet.pool import Pool

LARGE = 200_000

# As by `--max-tasks-per-child 1`, and by `--max-memory-per-child 1`, of which only the child knows.
one_job_a_child = pytest.mark.parametrize("pool", [{"maxtasksperchild": 1}], indirect=True)
too_large = pytest.mark.parametrize("pool", [{"max_memory_per_child": 1}], indirect=True)


class Running:
    """A pool of one child, and the loop in which it works; counts the loop's turns."""

    def __init__(self, **options: Any) -> None:
        self.hub = Hub()
        set_event_loop(self.hub)
        app = current_app._get_current_object()
        options |= {"threads": False, "putlocks": False, "initargs": (app, "w1@here")}
        self.tasks = TaskPool(1, app=app, **options)
        self.tasks.Pool = Pool
        self.tasks.start()
        self.tasks.register_with_event_loop(self.hub)
        self._loop = self.hub.create_loop()
        self.answers: list[Any] = []
        while not self.children._all_inqueues:
            self.turn()

    @property
    def children(self) -> Any:
        return self.tasks._pool

    def call(self, function: Any, *args: Any) -> Any:
        return self.tasks.apply_async(function, args, callback=self.answers.append)

    def turn(self) -> None:
        self.hub.call_later(0.02, lambda: None)
        next(self._loop)

    def settle(self, count: int) -> list[Any]:
        """Turn until there are so many answers."""
        while len(self.answers) < count:
            self.turn()
        return self.answers


@pytest.fixture
def pool(request: pytest.FixtureRequest) -> Iterator[Running]:
    running = Running(**getattr(request, "param", {}))
    yield running
    running.tasks.terminate()
    set_event_loop(None)


def length(text: str) -> int:
    """A job whose arguments may be larger than a pipe."""
    return len(text)


def repeated(text: str, times: int) -> str:
    """A job whose answer may be larger than a pipe."""
    return text * times


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
    """Also those that a pipe takes in several pieces, and in any mixture."""
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


def test_all_that_a_child_has_said_is_read_in_one_turn(pool: Running) -> None:
    """That it took a short job and what became of it: two words, both here by now."""
    pool.call(length, "abc")
    child = next(iter(pool.children._fileno_to_outq))
    while not select.select([child], [], [], 0.05)[0]:
        pass
    select.select([], [], [], 0.2)
    for _ in range(3):
        # The first turns may be those of the write and of the timer.
        pool.turn()
        if pool.answers:
            break
    accepted = len(pool.answers)
    assert accepted == 1


def test_a_child_that_dies_takes_nothing_along(pool: Running) -> None:
    """Its pipe is read to the end, another child is started, and the pool goes on."""
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


@pytest.mark.parametrize(("size", "is_whole"), [(1, True), (4092, True), (4093, False)])
def test_a_job_is_one_piece_while_a_pipe_takes_it_as_a_whole(size: int, is_whole: bool) -> None:
    """Longer ones keep their two pieces: half a piece could not be told from a whole one."""
    before = memoryview(b"\0\0\0\1"), memoryview(b"x" * size), size
    job = SimpleNamespace(_payload=before)
    _join(job)
    length, text, rest = job._payload
    assert bytes(length) + bytes(text) == b"\0\0\0\1" + b"x" * size
    assert (len(length) == 4 + size and rest == 0) is is_whole
