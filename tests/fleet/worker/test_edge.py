"""fleet/worker/edge.py: the loop goes on while the database is asked, and nothing said gets
lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from fleet import Ask, BrokerUnavailable, Edges, Hint, Kind, Refusal, Report
from fleet.contract import BUSY_ROW
from fleet.worker import edge as edge_module
from fleet.worker.edge import Edge
from jobs.wiring import edges as real_edges
from tests.waiting import wait_for


class Application:
    """The other side of an edge: notes what it is asked, and answers when it may."""

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

    def edges(self) -> Edges:
        return replace(
            real_edges(),
            admit=self._admit,
            record=self._record,
            publish=self._publish,
            prime=lambda: self._wait("prime", []),
            close=self._close,
        )

    def _wait(self, verb: str, batch: list[Any]) -> None:
        self.calls.append((verb, batch))
        assert self.may_answer.wait(20)
        if self.fails:
            raise self.fails.pop()

    def _admit(self, _node: UUID, asks: Sequence[Ask]) -> Mapping[str, Refusal]:
        self._wait("admit", [ask.run_id for ask in asks])
        return {ask.key: Refusal.GONE for ask in asks}

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
def application() -> Application:
    return Application()


def do_all(*steps: Callable[[], None]) -> None:
    for step in steps:
        step()


@pytest.fixture
def edge(application: Application, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edge]:
    """A running edge; what it posts is done in its own thread."""
    monkeypatch.setattr(edge_module, "RETRY_SECONDS", 0.02)
    edge = Edge(application.edges(), uuid4(), do_all)
    edge.start()
    yield edge
    application.may_answer.set()
    edge.stop()
    edge.join(20)
    assert not edge.is_alive()


def asking(edge: Edge, application: Application, *run_ids: str) -> list[bool]:
    """Ask for runs; their verdicts go to the application's list of answers."""
    return [
        edge.ask(
            Ask(run_id, "tests.add"),
            lambda verdict, _at, run_id=run_id: application.answers.append((run_id, verdict)),  # type: ignore[misc]
        )
        for run_id in run_ids
    ]


def telling(edge: Edge, application: Application, run_id: str, kind: Kind, token: int = 1) -> None:
    """Report; the state goes to the application's list of answers."""
    report = Report(run_id, token, kind, time.monotonic())
    edge.report(report, lambda state: application.answers.append((run_id, state)))


def wait_for_answers(application: Application, count: int) -> list[Any]:
    wait_for(lambda: len(application.answers) >= count, what=f"{count} answers")
    return application.answers


def test_every_ask_gets_its_verdict(edge: Edge, application: Application) -> None:
    """In one batch, when they come together."""
    asking(edge, application, "a", "b")
    assert sorted(wait_for_answers(application, 2)) == [("a", Refusal.GONE), ("b", Refusal.GONE)]


def test_batches_form_while_a_statement_runs(edge: Edge, application: Application) -> None:
    """What gathers meanwhile goes together; reports go before asks."""
    application.may_answer.clear()
    asking(edge, application, "a")
    wait_for(lambda: application.calls, what="the first statement")
    asking(edge, application, "b", "c")
    telling(edge, application, "x", Kind.SUCCEEDED)
    telling(edge, application, "y", Kind.FAILED)
    application.may_answer.set()
    wait_for_answers(application, 5)
    assert application.calls == [
        ("admit", ["a"]),
        ("record", [("x", "succeeded"), ("y", "failed")]),
        ("admit", ["b", "c"]),
    ]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may gather does so for longer than any test."""
    for name in ("START_SECONDS", "END_SECONDS", "ASK_SECONDS"):
        monkeypatch.setattr(edge_module, name, 60.0)


def gather(edge: Edge, application: Application, *run_ids: str) -> None:
    """Report and ask for each of these runs, without hurry."""
    for run_id in run_ids:
        report = Report(run_id, 1, Kind.SUCCEEDED, time.monotonic())
        edge.report(report, application.answers.append, is_urgent=False)
        edge.ask(Ask(run_id, "tests.add"), lambda *_: None, is_urgent=False)


def test_what_nobody_waits_for_gathers_for_a_moment(edge: Edge, application: Application) -> None:
    """One statement for many, instead of one for each."""
    gather(edge, application, "a", "b")
    assert application.calls == []
    wait_for(lambda: len(application.calls) == 2, what="both statements")
    assert application.calls == [
        ("record", [("a", "succeeded"), ("b", "succeeded")]),
        ("admit", ["a", "b"]),
    ]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("hurry", ["report", "ask", "flush"])
def test_all_goes_with_what_somebody_waits_for(
    edge: Edge, application: Application, hurry: str
) -> None:
    """A report, a question, or the end of the worker."""
    gather(edge, application, "a")
    if hurry == "report":
        telling(edge, application, "b", Kind.SUCCEEDED)
    elif hurry == "ask":
        asking(edge, application, "b")
    else:
        assert edge.flush(timeout=10)
    wait_for(lambda: len(application.calls) == 2, what="both statements")
    assert ("a", "succeeded") in application.calls[0][1] and "a" in application.calls[1][1]


@pytest.mark.usefixtures("patient")
def test_a_full_batch_waits_no_longer(
    edge: Edge, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not get any better."""
    monkeypatch.setattr(edge_module, "BATCH", 3)
    gather(edge, application, "a", "b")
    assert application.calls == []
    gather(edge, application, "c")
    wait_for(lambda: application.calls, what="a statement")


def test_a_run_is_asked_for_once_at_a_time(edge: Edge, application: Application) -> None:
    """A doubled hint is told so; after the verdict it may be asked for again."""
    application.may_answer.clear()
    assert asking(edge, application, "a", "a") == [True, False]
    application.may_answer.set()
    wait_for_answers(application, 1)
    assert asking(edge, application, "a") == [True]


def test_a_verdict_comes_with_the_time_of_its_question(
    edge: Edge, application: Application
) -> None:
    """The start deadline counts from there: the answer may have been long on its way."""
    application.may_answer.clear()
    edge.ask(Ask("a", "tests.add"), lambda _verdict, at: application.answers.append(at))
    wait_for(lambda: application.calls, what="the statement")
    before_the_answer = time.monotonic()
    application.may_answer.set()
    [asked_at] = wait_for_answers(application, 1)
    assert asked_at <= before_the_answer


def test_queues_that_have_forgotten_are_told_once_a_second(
    edge: Edge, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks does so with every take; what has failed is done when it is asked for again."""
    monkeypatch.setattr(edge_module, "RETRY_SECONDS", 0.5)
    application.fails = [OSError("the database is away")]
    began_at = time.monotonic()

    def asked() -> bool:
        edge.prime()
        return len(application.calls) == 3

    wait_for(asked)
    assert [verb for verb, _ in application.calls] == ["prime"] * 3
    assert time.monotonic() - began_at >= 1.0
    assert application.closed_count == 1


def test_a_large_number_of_asks_is_taken_in_parts(
    edge: Edge, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no statement grows without bound."""
    monkeypatch.setattr(edge_module, "ADMIT_AT_MOST", 10)
    application.may_answer.clear()
    asking(edge, application, "first")
    wait_for(lambda: application.calls, what="the first statement")
    asking(edge, application, *(str(number) for number in range(25)))
    application.may_answer.set()
    wait_for_answers(application, 26)
    assert [len(batch) for _, batch in application.calls] == [1, 10, 10, 5]


def test_a_start_waits_a_moment_for_its_end(edge: Edge, application: Application) -> None:
    """Both are then one write; alone, it is written after that moment."""
    began_at = time.monotonic()
    edge.begin("a", 1, began_at)
    telling(edge, application, "a", Kind.SUCCEEDED)
    wait_for_answers(application, 1)
    assert application.calls == [("record", [("a", "succeeded")])]
    assert application.starts == [began_at]
    edge.begin("b", 1, began_at := time.monotonic())
    wait_for(lambda: len(application.calls) == 2, what="the start")
    assert time.monotonic() >= began_at + edge_module.START_SECONDS
    assert application.calls[1:] == [("record", [("b", "started")])]
    telling(edge, application, "b", Kind.SUCCEEDED)
    wait_for_answers(application, 2)
    assert application.starts[1:] == [None, None], "once"


def test_a_start_belongs_to_its_own_attempt(edge: Edge, application: Application) -> None:
    """The end of the one before may be heard of later."""
    edge.begin("a", 2, time.monotonic())
    telling(edge, application, "a", Kind.FAILED)
    wait_for_answers(application, 1)
    assert application.starts == [None]
    assert edge.unbegin("a", 2)


def test_a_start_is_taken_back_until_it_is_written(edge: Edge, application: Application) -> None:
    """Who takes it back learns which: of the latter the row knows."""
    edge.begin("a", 1, time.monotonic())
    assert edge.unbegin("a", 1)
    edge.begin("b", 1, time.monotonic())
    wait_for(lambda: application.calls, what="the start of b")
    assert not edge.unbegin("b", 1)
    assert application.calls == [("record", [("b", "started")])]


def test_an_old_token_is_told_so(edge: Edge, application: Application) -> None:
    """By no state at all."""
    telling(edge, application, "a", Kind.SUCCEEDED, token=0)
    assert wait_for_answers(application, 1) == [("a", None)]


def test_what_could_not_be_written_is_written_again(edge: Edge, application: Application) -> None:
    """The same reports, before newer ones, on a new connection; told once."""
    application.fails = [OSError("down"), OSError("down")]
    telling(edge, application, "a", Kind.SUCCEEDED)
    assert wait_for_answers(application, 1) == [("a", "succeeded")]
    assert application.calls == [("record", [("a", "succeeded")])] * 3
    assert application.closed_count == 2


def test_what_could_not_be_asked_is_asked_again(edge: Edge, application: Application) -> None:
    """A database that is away costs time and nothing else."""
    application.fails = [OSError("down")]
    asking(edge, application, "a")
    assert wait_for_answers(application, 1) == [("a", Refusal.GONE)]
    assert application.calls == [("admit", ["a"])] * 2


def test_a_row_that_somebody_holds_keeps_nobody_else(edge: Edge, application: Application) -> None:
    """It is reported again after a moment, and counts as unwritten until then."""
    application.busy = ["a"]
    telling(edge, application, "a", Kind.SUCCEEDED)
    telling(edge, application, "b", Kind.SUCCEEDED)
    assert edge.flush(timeout=10)
    assert application.answers == [("b", "succeeded"), ("a", "succeeded")]


def publishing(edge: Edge, application: Application, run_id: str) -> None:
    """Have a hint published; that it is out goes to the application's list of answers."""
    hint = Hint(run_id, "tests.add", "jobs", "acme", job=7)
    edge.publish(hint, lambda: application.answers.append((run_id, "out")))


def test_hints_are_published_together(edge: Edge, application: Application) -> None:
    """Each is told when all are out."""
    application.may_answer.clear()
    publishing(edge, application, "a")
    wait_for(lambda: application.calls, what="the first publish")
    publishing(edge, application, "b")
    publishing(edge, application, "c")
    application.may_answer.set()
    assert wait_for_answers(application, 3) == [("a", "out"), ("b", "out"), ("c", "out")]
    assert application.calls == [("publish", ["a"]), ("publish", ["b", "c"])]


def test_a_broker_that_is_away_keeps_hints_and_nothing_else(
    edge: Edge,
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are published in a moment, before newer ones; reports and asks do not wait for it.

    It is one line of the log, and the database keeps its connection.
    """
    monkeypatch.setattr(edge_module, "RETRY_SECONDS", 0.5)
    application.fails = [BrokerUnavailable("away")]
    application.may_answer.clear()
    publishing(edge, application, "a")
    wait_for(lambda: application.calls, what="the publish that fails")
    publishing(edge, application, "b")
    telling(edge, application, "x", Kind.SUCCEEDED)
    asking(edge, application, "y")
    application.may_answer.set()
    assert wait_for_answers(application, 4)[2:] == [("a", "out"), ("b", "out")]
    assert [verb for verb, _ in application.calls] == ["publish", "record", "admit", "publish"]
    assert application.closed_count == 0
    said = [(line.getMessage(), line.exc_info) for line in caplog.records]
    assert said == [("could not publish; trying again: away", None)]


def test_flush_waits_for_every_hint(edge: Edge, application: Application) -> None:
    """Or says that the time was too short: its message then goes back, and nothing is lost."""
    application.fails = [BrokerUnavailable("away")] * 1_000
    publishing(edge, application, "a")
    assert not edge.flush(timeout=0.1)
    application.fails.clear()
    assert edge.flush(timeout=10)
    assert application.answers == [("a", "out")]


def test_two_attempts_of_a_run_without_a_row_are_two_asks(
    edge: Edge, application: Application
) -> None:
    """There is no row that knows which of them stands: each has its verdict."""
    application.may_answer.clear()
    asks = [Ask("a", "tests.add", 7, "acme", token=token) for token in (1, 2, 2)]
    assert [edge.ask(ask, lambda *_: None) for ask in asks] == [True, True, False]
    application.may_answer.set()


def test_flush_waits_for_every_report(edge: Edge, application: Application) -> None:
    """Or says that the time was too short."""
    application.may_answer.clear()
    telling(edge, application, "a", Kind.SUCCEEDED)
    assert not edge.flush(timeout=0.05)
    application.may_answer.set()
    assert edge.flush(timeout=10)
    assert application.answers == [("a", "succeeded")]


def test_a_stopped_edge_writes_what_it_has_and_asks_no_more(
    edge: Edge, application: Application
) -> None:
    """An ask without a verdict is a hint that goes back."""
    application.may_answer.clear()
    telling(edge, application, "a", Kind.SUCCEEDED)
    wait_for(lambda: application.calls, what="the statement")
    telling(edge, application, "b", Kind.SUCCEEDED)
    asking(edge, application, "c")
    edge.stop()
    application.may_answer.set()
    edge.join(10)
    assert sorted(application.answers) == [("a", "succeeded"), ("b", "succeeded")]
    assert {verb for verb, _ in application.calls} == {"record"}
