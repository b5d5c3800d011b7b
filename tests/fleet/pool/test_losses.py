"""fleet/pool/losses.py over real children: one ends while the pool cleans up behind another."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from billiard.exceptions import WorkerLostError

from tests.fleet.pool.test_pool import Running, length, pool, two_children
from tests.waiting import wait_for

__all__ = ["pool"]


def start_and_wait(starts: Path, may_end: Path) -> str:
    """A job that writes a line when it starts, and ends when it may."""
    with starts.open("a") as log:
        log.write(f"{os.getpid()}\n")
    wait_for(may_end.exists)
    return "done"


class Two:
    """Two children with a job each. The pool looks at the second one's end first."""

    def __init__(self, pool: Running, folder: Path) -> None:
        self.pool = pool
        self.starts, self.may_end = folder / "starts", folder / "may-end"
        self.lost: list[Any] = []
        for _ in range(2):
            pool.call(start_and_wait, self.starts, self.may_end, error_callback=self.lost.append)
        self.first, self.second = pool.children._pool
        wait_for(lambda: self.starts.exists() and self.count_starts() == 2)

    def count_starts(self) -> int:
        return len(self.starts.read_text().splitlines())

    def kill_second(self) -> None:
        os.kill(self.second.pid, signal.SIGKILL)
        # The pool can still read how it has ended.
        os.waitid(os.P_PID, self.second.pid, os.WEXITED | os.WNOWAIT)

    def while_first_ends(self, act: Callable[[], None]) -> None:
        """Kill the first child, and act after the pool has seen that the second one lives."""
        flush = self.pool.children.process_flush_queues

        def flush_and_act(child: Any) -> None:
            flush(child)
            if child is self.first:
                self.pool.children.process_flush_queues = flush
                act()

        self.pool.children.process_flush_queues = flush_and_act
        os.kill(self.first.pid, signal.SIGKILL)

    def are_lost(self, count: int) -> None:
        """Turn until this many are lost; the pool then works on, and has started none again."""
        while len(self.lost) < count:
            self.pool.turn()
        for einfo in self.lost:
            assert isinstance(getattr(einfo.exception, "exc", einfo.exception), WorkerLostError)
        self.may_end.touch()
        for text in ("a", "ab"):
            self.pool.call(length, text)
        assert {1, 2} <= set(self.pool.settle(4 - count))
        assert (self.count_starts(), len(self.lost)) == (2, count)


@pytest.fixture
def two(pool: Running, tmp_path: Path) -> Two:
    return Two(pool, tmp_path)


@two_children
def test_a_job_whose_child_dies_meanwhile_is_not_started_again(two: Two) -> None:
    """The child has read it. The next child has a pipe with the same number, and has not."""
    two.while_first_ends(two.kill_second)
    two.are_lost(2)


@two_children
def test_a_result_of_a_child_that_ends_meanwhile_is_read(two: Two) -> None:
    """The child wrote it before its end."""

    def end_second() -> None:
        two.may_end.touch()
        wait_for(partial(two.second.outq._reader.poll, 0))
        two.kill_second()

    two.while_first_ends(end_second)
    two.are_lost(1)
    assert "done" in two.pool.answers


@two_children
def test_a_child_that_is_not_the_one_that_was_written_to_says_nothing(two: Two) -> None:
    """As when the next child has got its pipes: whether the job was read is then unknown."""
    [job] = [job for job in two.pool.children._cache.values() if job._write_to is two.first]
    two.while_first_ends(lambda: setattr(job, "_write_to", two.second))
    two.are_lost(1)
