"""fleet/worker/away.py: hints that get no answer for a lease go back, and the worker takes none."""

import math
import time
from types import SimpleNamespace
from typing import Any

import pytest

from fleet import Admission, Kind, Refusal
from fleet.worker.away import Away
from fleet.worker.io_thread import IOThread
from fleet.worker.leasing import may_take
from tests.fleet.worker.test_io_thread import FakeApplication, asking, fake, io_thread
from tests.waiting import wait_for

__all__ = ["fake", "io_thread"]

LEASE = 0.2
BUSY = ("a", Refusal.BUSY)


class Waiting:
    """A worker that waits for the verdict on run `a`; its database does not answer yet."""

    def __init__(self, thread: IOThread, application: FakeApplication) -> None:
        self.thread, self.application = thread, application
        self.lease_ends = math.inf
        self.away = Away(thread, lease_seconds=LEASE, lease_ends=lambda: self.lease_ends)
        self.worker = SimpleNamespace(
            pool=SimpleNamespace(num_processes=1), consumer=SimpleNamespace(away=self.away)
        )
        application.admits = True
        application.may_answer.clear()
        self.ask("a")
        self.wait_for_question()

    def ask(self, run_id: str) -> bool:
        [is_new] = asking(self.thread, self.application, run_id)
        return is_new

    def wait_for_question(self, count: int = 1) -> None:
        wait_for(lambda: len(self.asked) >= count, what="the statement")

    def look_after_a_lease(self) -> None:
        """Look when the first request has waited for a lease."""
        wait_for(lambda: self.thread.longest_wait > LEASE, what="a lease")
        self.away.look()

    def look_after_the_end_of_the_lease(self) -> None:
        """Look when the worker could not renew its lease."""
        self.lease_ends = time.monotonic()
        self.away.look()

    def answer(self) -> None:
        """Have the database answer again."""
        self.application.may_answer.set()
        wait_for(lambda: self.thread.longest_wait == 0, what="the end of the statement")

    def second_verdict(self) -> Any:
        wait_for(lambda: len(self.verdicts) == 2, what="an answer")
        return self.verdicts[1][1]

    @property
    def verdicts(self) -> list[Any]:
        return self.application.answers

    @property
    def asked(self) -> list[list[str]]:
        return [batch for verb, batch in self.application.calls if verb == "admit"]

    @property
    def reported(self) -> list[list[Any]]:
        return [batch for verb, batch in self.application.calls if verb == "record"]


@pytest.fixture
def waiting(io_thread: IOThread, fake: FakeApplication) -> Waiting:
    return Waiting(io_thread, fake)


def test_hints_go_back_when_no_answer_comes_for_a_lease(waiting: Waiting) -> None:
    """Those of the statement that hangs, and those behind it; each once."""
    waiting.ask("b")
    waiting.away.look()
    assert (waiting.verdicts, may_take(waiting.worker)) == ([], True)
    waiting.look_after_a_lease()
    waiting.away.look()
    assert waiting.verdicts == [BUSY, ("b", Refusal.BUSY)]
    assert not may_take(waiting.worker)


def test_hints_go_back_when_the_lease_has_ended(waiting: Waiting) -> None:
    """The database admits nothing to such a worker, however long the hint has waited."""
    waiting.look_after_the_end_of_the_lease()
    assert waiting.verdicts == [BUSY]
    assert not may_take(waiting.worker)


def test_a_run_that_is_admitted_too_late_is_handed_back(waiting: Waiting) -> None:
    """Its hint is another worker's: this one reports it, and starts nothing."""
    waiting.look_after_a_lease()
    waiting.answer()
    wait_for(lambda: waiting.reported, what="a report")
    assert waiting.reported == [[("a", Kind.GIVEN_BACK.value)]]
    assert waiting.verdicts == [BUSY]


def test_the_worker_takes_again_when_the_database_answers(waiting: Waiting) -> None:
    """A hint that comes back to it is asked for again."""
    waiting.look_after_a_lease()
    waiting.answer()
    waiting.away.look()
    assert may_take(waiting.worker)
    waiting.ask("a")
    assert isinstance(waiting.second_verdict(), Admission)


def test_a_hint_that_comes_back_before_the_answer_gets_it(waiting: Waiting) -> None:
    """The lease was renewed late, while the statement hangs: the hint must not be dropped."""
    waiting.look_after_the_end_of_the_lease()
    waiting.lease_ends = math.inf
    waiting.away.look()
    assert may_take(waiting.worker)
    assert waiting.ask("a")
    waiting.answer()
    assert isinstance(waiting.second_verdict(), Admission)
    assert waiting.verdicts[0] == BUSY
    assert (waiting.reported, waiting.asked) == ([], [["a"]])


def test_a_statement_that_fails_is_repeated_for_a_hint_that_came_back(waiting: Waiting) -> None:
    """It is not forgotten with those that were refused."""
    waiting.application.fails = [OSError("the database is away")]
    waiting.look_after_the_end_of_the_lease()
    assert waiting.ask("a")
    waiting.application.may_answer.set()
    waiting.second_verdict()
    assert waiting.asked == [["a"], ["a"]]


def test_a_statement_that_fails_is_not_repeated_for_refused_hints(waiting: Waiting) -> None:
    """Another worker may have them."""
    waiting.application.fails = [OSError("the database is away")]
    waiting.look_after_a_lease()
    waiting.answer()
    waiting.ask("b")
    waiting.wait_for_question(2)
    assert waiting.asked == [["a"], ["b"]]


def test_a_worker_without_hints_keeps_taking(waiting: Waiting) -> None:
    """Plain tasks need no database."""
    waiting.answer()
    waiting.look_after_the_end_of_the_lease()
    assert may_take(waiting.worker)
