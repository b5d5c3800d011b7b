"""fleet/worker/away.py: hints that get no answer for a lease go back, and the worker takes none."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from fleet import Admission, AdmissionRequest, Kind, Refusal, Report
from fleet.worker import io_thread as io_thread_module
from fleet.worker.away import Away
from fleet.worker.io_thread import IOThread
from fleet.worker.leasing import may_take
from jobs.wiring import application
from tests.waiting import wait_for

LEASE = 0.2


class Silent:
    """A worker's I/O thread whose database admits runs, once it answers."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.fails: deque[Exception] = deque()
        self.asked: list[list[str]] = []
        self.verdicts: list[tuple[str, Any]] = []
        self.reports: list[Report] = []
        made = replace(application(), admit=self._admit, record=self._record, close=lambda: None)
        self.io_thread = IOThread(made, uuid4(), self._post)
        self.lease_ends = math.inf
        self.away = Away(self.io_thread, lease_seconds=LEASE, lease_ends=lambda: self.lease_ends)
        pool = SimpleNamespace(num_processes=1)
        self.worker = SimpleNamespace(pool=pool, consumer=SimpleNamespace(away=self.away))

    def ask(self, *run_ids: str) -> list[bool]:
        return [
            self.io_thread.request_admission(
                AdmissionRequest(run_id, "tests.add"),
                lambda verdict, _at, run_id=run_id: self.verdicts.append((run_id, verdict)),  # type: ignore[misc]
            )
            for run_id in run_ids
        ]

    def wait_for_question(self, count: int = 1) -> None:
        wait_for(lambda: len(self.asked) >= count, what="the statement")

    def last(self) -> None:
        """Wait until the first request has waited for a lease."""
        wait_for(lambda: self.io_thread.longest_wait > LEASE, what="a lease")

    def _post(self, *steps: Callable[[], None]) -> None:
        for step in steps:
            step()

    def _admit(
        self, _node: UUID, requests: Sequence[AdmissionRequest]
    ) -> Mapping[str, Admission | Refusal]:
        self.asked.append([request.run_id for request in requests])
        assert self.answers.wait(200)
        if self.fails:
            raise self.fails.popleft()
        return {one.key: Admission(one.run_id, 1, 1, b"", {}) for one in requests}

    def _record(self, reports: Sequence[Report]) -> Mapping[str, str]:
        self.reports += reports
        return {}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    monkeypatch.setattr(io_thread_module, "RETRY_SECONDS", 0.02)
    silent = Silent()
    silent.io_thread.start()
    yield silent
    silent.answers.set()
    silent.io_thread.stop()
    silent.io_thread.join(200)


def test_hints_go_back_when_no_answer_comes_for_a_lease(silent: Silent) -> None:
    """Those of the statement that hangs, and those behind it; each once."""
    silent.ask("a")
    silent.wait_for_question()
    silent.ask("b")
    silent.away.look()
    assert (silent.verdicts, may_take(silent.worker)) == ([], True)
    silent.last()
    silent.away.look()
    silent.away.look()
    assert silent.verdicts == [("a", Refusal.BUSY), ("b", Refusal.BUSY)]
    assert not may_take(silent.worker)


def test_hints_go_back_when_the_lease_has_ended(silent: Silent) -> None:
    """The database admits nothing to such a worker, however long the hint has waited."""
    silent.ask("a")
    silent.wait_for_question()
    silent.lease_ends = time.monotonic()
    silent.away.look()
    assert silent.verdicts == [("a", Refusal.BUSY)]
    assert not may_take(silent.worker)


def test_a_run_that_is_admitted_too_late_is_handed_back(silent: Silent) -> None:
    """Its hint is another worker's: this one reports it, and starts nothing."""
    silent.ask("a")
    silent.wait_for_question()
    silent.last()
    silent.away.look()
    silent.answers.set()
    wait_for(lambda: silent.reports, what="a report")
    assert [(one.run_id, one.token, one.kind) for one in silent.reports] == [
        ("a", 1, Kind.GIVEN_BACK)
    ]
    assert silent.verdicts == [("a", Refusal.BUSY)]


def test_the_worker_takes_again_when_the_database_answers(silent: Silent) -> None:
    """A hint that comes back to it is asked for again."""
    silent.ask("a")
    silent.wait_for_question()
    silent.last()
    silent.away.look()
    silent.answers.set()
    wait_for(lambda: silent.io_thread.longest_wait == 0, what="the end of the statement")
    silent.away.look()
    assert may_take(silent.worker)
    silent.ask("a")
    wait_for(lambda: len(silent.verdicts) == 2, what="an answer")
    assert isinstance(silent.verdicts[1][1], Admission)


def test_a_hint_that_comes_back_before_the_answer_gets_it(silent: Silent) -> None:
    """The lease was renewed late, while the statement hangs: the hint must not be dropped."""
    silent.ask("a")
    silent.wait_for_question()
    silent.lease_ends = time.monotonic()
    silent.away.look()
    silent.lease_ends = math.inf
    silent.away.look()
    assert may_take(silent.worker)
    assert silent.ask("a") == [True]
    silent.answers.set()
    wait_for(lambda: len(silent.verdicts) == 2, what="an answer")
    assert silent.verdicts[0] == ("a", Refusal.BUSY)
    assert isinstance(silent.verdicts[1][1], Admission)
    assert (silent.reports, silent.asked) == ([], [["a"]])


def test_a_hint_that_comes_back_is_asked_for_again_when_the_statement_fails(
    silent: Silent,
) -> None:
    """It is not forgotten with those that were refused."""
    silent.fails.append(OSError("the database is away"))
    silent.ask("a")
    silent.wait_for_question()
    silent.lease_ends = time.monotonic()
    silent.away.look()
    assert silent.ask("a") == [True]
    silent.answers.set()
    silent.wait_for_question(2)
    assert silent.asked == [["a"], ["a"]]
    wait_for(lambda: len(silent.verdicts) == 2, what="an answer")


def test_a_statement_that_fails_is_not_repeated_for_refused_hints(silent: Silent) -> None:
    """Another worker may have them."""
    silent.fails.append(OSError("the database is away"))
    silent.ask("a")
    silent.wait_for_question()
    silent.last()
    silent.away.look()
    silent.answers.set()
    wait_for(lambda: silent.io_thread.longest_wait == 0, what="the end of the statement")
    silent.ask("b")
    silent.wait_for_question(2)
    assert silent.asked == [["a"], ["b"]]


def test_a_worker_without_hints_keeps_taking(silent: Silent) -> None:
    """Plain tasks need no database."""
    silent.lease_ends = time.monotonic() - 1
    silent.away.look()
    assert may_take(silent.worker)
