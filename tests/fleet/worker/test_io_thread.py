"""fleet/worker/io_thread.py: the loop turns while the database is asked; no report is lost."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from fleet import (
    Admission,
    AdmissionRequest,
    Application,
    BrokerUnavailable,
    Hint,
    Kind,
    Refusal,
    Report,
)
from fleet.contract import BUSY_ROW
from fleet.worker import io_thread as io_thread_module
from fleet.worker.io_thread import IOThread
from jobs.wiring import application
from tests.waiting import wait_for


class FakeApplication:
    """The application behind an I/O thread: records calls, and answers when it may."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []
        self.answers: list[Any] = []
        self.starts: list[float | None] = []
        """With each report, when its attempt began."""
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.fails: list[Exception] = []
        self.busy: list[str] = []
        self.closed_count = 0
        self.omits: set[str] = set()
        """Runs whose requests get no answer."""
        self.admits = False
        self.dies_in = ""
        """The verb that ends the thread, once."""

    def callables(self) -> Application:
        return replace(
            application(),
            admit=self._admit,
            record=self._record,
            publish=self._publish,
            prime=lambda: self._wait("prime", []),
            close=self._close,
        )

    def _wait(self, verb: str, batch: list[Any]) -> None:
        self.calls.append((verb, batch))
        assert self.may_answer.wait(200)
        if self.fails:
            raise self.fails.pop()
        if verb == self.dies_in:
            self.dies_in = ""
            raise SystemExit(verb)

    def _admit(
        self, _node: UUID, asks: Sequence[AdmissionRequest]
    ) -> Mapping[str, Admission | Refusal]:
        self._wait("admit", [ask.run_id for ask in asks])
        return {
            ask.key: Admission(ask.run_id, 1, 1, b"", {}) if self.admits else Refusal.GONE
            for ask in asks
            if ask.run_id not in self.omits
        }

    def _record(self, reports: Sequence[Report]) -> Mapping[str, str]:
        self.starts += [report.started_at for report in reports]
        self._wait("record", [(report.run_id, report.kind.value) for report in reports])
        busy, self.busy = self.busy, []
        return {
            report.run_id: BUSY_ROW if report.run_id in busy else str(report.kind)
            for report in reports
            if report.token == 1
        }

    def _publish(self, hints: Sequence[Hint]) -> None:
        self._wait("publish", [hint.run_id for hint in hints])

    def _close(self) -> None:
        self.closed_count += 1


@pytest.fixture
def fake() -> FakeApplication:
    return FakeApplication()


def do_all(*steps: Callable[[], None]) -> None:
    for step in steps:
        step()


@pytest.fixture
def io_thread(fake: FakeApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[IOThread]:
    """A running I/O thread; its posts run in its own thread."""
    monkeypatch.setattr(io_thread_module, "RETRY_SECONDS", 0.02)
    io_thread = IOThread(fake.callables(), uuid4(), do_all)
    io_thread.start()
    yield io_thread
    fake.may_answer.set()
    io_thread.stop()
    io_thread.join(200)
    assert not io_thread.is_alive()


def asking(
    io_thread: IOThread, fake: FakeApplication, *run_ids: str, is_urgent: bool = True
) -> list[bool]:
    """Ask for runs; their verdicts go to the fake's list of answers."""
    return [
        io_thread.request_admission(
            AdmissionRequest(run_id, "tests.add"),
            lambda verdict, _at, run_id=run_id: fake.answers.append((run_id, verdict)),  # type: ignore[misc]
            is_urgent=is_urgent,
        )
        for run_id in run_ids
    ]


def telling(
    io_thread: IOThread, fake: FakeApplication, run_id: str, kind: Kind, *, is_urgent: bool = True
) -> None:
    """Report; the state goes to the fake's list of answers."""
    report = Report(run_id, 1, kind, time.monotonic())
    io_thread.report(
        report, lambda state: fake.answers.append((run_id, state)), is_urgent=is_urgent
    )


def wait_for_answers(fake: FakeApplication, count: int) -> list[Any]:
    wait_for(lambda: len(fake.answers) >= count, what=f"{count} answers")
    return fake.answers


def test_batches_form_while_a_statement_runs(io_thread: IOThread, fake: FakeApplication) -> None:
    """Reports and asks that arrive meanwhile form a batch; reports go first."""
    fake.may_answer.clear()
    asking(io_thread, fake, "a")
    wait_for(lambda: fake.calls, what="the first statement")
    asking(io_thread, fake, "b", "c")
    telling(io_thread, fake, "x", Kind.SUCCEEDED)
    telling(io_thread, fake, "y", Kind.FAILED)
    fake.may_answer.set()
    wait_for_answers(fake, 5)
    assert fake.calls == [
        ("admit", ["a"]),
        ("record", [("x", "succeeded"), ("y", "failed")]),
        ("admit", ["b", "c"]),
    ]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches wait for longer than any test."""
    for name in ("START_SECONDS", "END_SECONDS", "REQUEST_SECONDS"):
        monkeypatch.setattr(io_thread_module, name, 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("hurry", ["report", "ask", "flush"])
def test_all_goes_with_what_somebody_waits_for(
    io_thread: IOThread, fake: FakeApplication, hurry: str
) -> None:
    """A report, a question, or the end of the worker."""
    telling(io_thread, fake, "a", Kind.SUCCEEDED, is_urgent=False)
    asking(io_thread, fake, "a", is_urgent=False)
    if hurry == "report":
        telling(io_thread, fake, "b", Kind.SUCCEEDED)
    elif hurry == "ask":
        asking(io_thread, fake, "b")
    else:
        assert io_thread.flush(timeout=10)
    wait_for(lambda: len(fake.calls) == 2, what="both statements")
    assert ("a", "succeeded") in fake.calls[0][1] and "a" in fake.calls[1][1]


def test_a_run_is_asked_for_once_at_a_time(io_thread: IOThread, fake: FakeApplication) -> None:
    """A duplicate hint gets this answer; after the verdict it may be asked for again."""
    fake.may_answer.clear()
    assert asking(io_thread, fake, "a", "a") == [True, False]
    fake.may_answer.set()
    wait_for_answers(fake, 1)
    assert asking(io_thread, fake, "a") == [True]


def test_a_verdict_comes_with_the_time_of_its_question(
    io_thread: IOThread, fake: FakeApplication
) -> None:
    """The start deadline counts from there: the answer may have been long on its way."""
    fake.may_answer.clear()
    io_thread.request_admission(
        AdmissionRequest("a", "tests.add"), lambda _verdict, at: fake.answers.append(at)
    )
    wait_for(lambda: fake.calls, what="the statement")
    before_the_answer = time.monotonic()
    fake.may_answer.set()
    [asked_at] = wait_for_answers(fake, 1)
    assert asked_at <= before_the_answer


def test_queues_that_have_forgotten_are_told_once_a_second(
    io_thread: IOThread, fake: FakeApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each take asks; a failed call is repeated at the next ask."""
    monkeypatch.setattr(io_thread_module, "RETRY_SECONDS", 0.5)
    fake.fails = [OSError("the database is away")]
    began_at = time.monotonic()

    def asked() -> bool:
        io_thread.prime()
        return len(fake.calls) == 3

    wait_for(asked)
    assert [verb for verb, _ in fake.calls] == ["prime"] * 3
    assert time.monotonic() - began_at >= 1.0
    assert fake.closed_count == 1


def test_what_could_not_be_written_or_asked_is_tried_again(
    io_thread: IOThread, fake: FakeApplication
) -> None:
    """A database that is away costs time and nothing else; each try has a new connection."""
    fake.fails = [OSError("down"), OSError("down")]
    telling(io_thread, fake, "a", Kind.SUCCEEDED)
    assert wait_for_answers(fake, 1) == [("a", "succeeded")]
    assert fake.calls == [("record", [("a", "succeeded")])] * 3
    assert fake.closed_count == 2
    fake.fails = [OSError("down")]
    asking(io_thread, fake, "b")
    assert wait_for_answers(fake, 2)[1] == ("b", Refusal.GONE)
    assert fake.calls[3:] == [("admit", ["b"])] * 2


def test_a_row_that_somebody_holds_keeps_nobody_else(
    io_thread: IOThread, fake: FakeApplication
) -> None:
    """It is reported again after a pause, and counts as unwritten until then."""
    fake.busy = ["a"]
    telling(io_thread, fake, "a", Kind.SUCCEEDED)
    telling(io_thread, fake, "b", Kind.SUCCEEDED)
    assert io_thread.flush(timeout=10)
    assert fake.answers == [("b", "succeeded"), ("a", "succeeded")]


def publishing(io_thread: IOThread, fake: FakeApplication, run_id: str) -> None:
    """Have a hint published; that it is out goes to the fake's list of answers."""
    hint = Hint(run_id, "tests.add", "jobs", "acme", job=7)
    io_thread.publish(hint, lambda: fake.answers.append((run_id, "out")))


def test_a_broker_that_is_away_keeps_hints_and_nothing_else(
    io_thread: IOThread,
    fake: FakeApplication,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are published after a pause, before newer ones; reports and asks do not wait.

    The log has one line, and the database keeps its connection.
    """
    monkeypatch.setattr(io_thread_module, "RETRY_SECONDS", 0.5)
    fake.fails = [BrokerUnavailable("away")]
    fake.may_answer.clear()
    publishing(io_thread, fake, "a")
    wait_for(lambda: fake.calls, what="the publish that fails")
    publishing(io_thread, fake, "b")
    telling(io_thread, fake, "x", Kind.SUCCEEDED)
    asking(io_thread, fake, "y")
    fake.may_answer.set()
    assert wait_for_answers(fake, 4)[2:] == [("a", "out"), ("b", "out")]
    assert [verb for verb, _ in fake.calls] == ["publish", "record", "admit", "publish"]
    assert fake.closed_count == 0
    said = [(line.getMessage(), line.exc_info) for line in caplog.records]
    assert said == [("could not publish; trying again: away", None)]


def test_two_attempts_of_a_run_without_a_row_are_two_asks(
    io_thread: IOThread, fake: FakeApplication
) -> None:
    """There is no row that knows which of them stands: each has its verdict."""
    fake.may_answer.clear()
    asks = [AdmissionRequest("a", "tests.add", 7, "acme", token=token) for token in (1, 2, 2)]
    assert [io_thread.request_admission(ask, lambda *_: None) for ask in asks] == [
        True,
        True,
        False,
    ]
    fake.may_answer.set()


def test_flush_waits_for_every_report(io_thread: IOThread, fake: FakeApplication) -> None:
    """Or it returns that the time was too short."""
    fake.may_answer.clear()
    telling(io_thread, fake, "a", Kind.SUCCEEDED)
    assert not io_thread.flush(timeout=0.05)
    fake.may_answer.set()
    assert io_thread.flush(timeout=10)
    assert fake.answers == [("a", "succeeded")]


def test_a_stopped_thread_writes_what_it_has_and_asks_no_more(
    io_thread: IOThread, fake: FakeApplication
) -> None:
    """An ask without a verdict is a hint that goes back."""
    fake.may_answer.clear()
    telling(io_thread, fake, "a", Kind.SUCCEEDED)
    wait_for(lambda: fake.calls, what="the statement")
    telling(io_thread, fake, "b", Kind.SUCCEEDED)
    asking(io_thread, fake, "c")
    io_thread.stop()
    fake.may_answer.set()
    io_thread.join(100)
    assert sorted(fake.answers) == [("a", "succeeded"), ("b", "succeeded")]
    assert {verb for verb, _ in fake.calls} == {"record"}


def test_a_run_without_a_verdict_costs_one_run(io_thread: IOThread, fake: FakeApplication) -> None:
    """Its hint goes back; the others of its batch get their answers."""
    fake.may_answer.clear()
    asking(io_thread, fake, "first")
    wait_for(lambda: fake.calls, what="the first statement")
    fake.omits = {"b"}
    asking(io_thread, fake, "a", "b", "c")
    fake.may_answer.set()
    answers = dict(wait_for_answers(fake, 4))
    assert (answers["a"], answers["b"], answers["c"]) == (
        Refusal.GONE,
        Refusal.BUSY,
        Refusal.GONE,
    )


@pytest.mark.parametrize("verb", ["admit", "record", "publish"])
def test_a_thread_that_dies_is_replaced(
    io_thread: IOThread, fake: FakeApplication, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so; hints that waited go back, and reports are recorded by the next thread."""
    fake.dies_in = verb
    telling(io_thread, fake, "a", Kind.SUCCEEDED)
    publishing(io_thread, fake, "h")
    asking(io_thread, fake, "z")
    wait_for(lambda: not io_thread.is_alive(), what="the end of the thread")
    io_thread.watch()
    answers = dict(wait_for_answers(fake, 3))
    assert (answers["a"], answers["h"]) == ("succeeded", "out")
    assert answers["z"] in (Refusal.BUSY, Refusal.GONE)
    assert io_thread.is_alive() and io_thread.flush(timeout=10)
    assert {"io_thread_died", "io_thread_replaced"} <= {
        getattr(line, "event", "") for line in caplog.records
    }
