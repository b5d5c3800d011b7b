"""A report that PostgreSQL refuses for good fails its run, and no other."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from fleet import Kind, Report
from fleet.worker.io_thread import IOThread
from jobs.models import Attempt, Owner, Run
from jobs.wiring import application
from tests.fleet.worker.test_io_thread import do_all
from tests.jobs.scenes import admitted, ask, living_worker, submitted
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def io_thread() -> Iterator[IOThread]:
    """A worker's I/O thread on PostgreSQL; its posts run in its own thread."""
    io_thread = IOThread(application(), living_worker(), do_all)
    yield io_thread
    io_thread.stop()
    io_thread.join(200)


REFUSED: dict[str, dict[str, Any]] = {
    "a retry in 10^15 seconds": {"kind": Kind.RETRYING, "delay": 1e15},
    "an infinite delay": {"kind": Kind.RETRYING, "delay": float("inf")},
    "a NUL in the kind of error": {"kind": Kind.FAILED, "error_type": "Bad\x00Error"},
    "a lone surrogate in a message": {"kind": Kind.FAILED, "error_message": "\ud800"},
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_report_fails_its_run_alone(io_thread: IOThread, acme: Owner, what: str) -> None:
    """Its batch is recorded, its caller is answered, and runs are admitted after it."""
    worker = living_worker()
    first, bad, last, later = submitted(acme, 4)
    states: dict[str, str | None] = {}
    for run in (first, bad, last):
        held = admitted(worker, run)
        facts = REFUSED[what] if run == bad else {"kind": Kind.SUCCEEDED, "result": b"1"}
        report = Report(held.run_id, held.token, at=time.monotonic(), **facts)

        def then(state: str | None, run_id: str = held.run_id) -> None:
            states[run_id] = state

        io_thread.report(report, then)
    io_thread.start()
    wait_for(lambda: len(states) == 3, what="three answers")
    assert states == {str(first.pk): "succeeded", str(bad.pk): "failed", str(last.pk): "succeeded"}
    assert [run.state for run in Run.objects.filter(pk__in=[first.pk, last.pk])] == [
        "succeeded"
    ] * 2
    assert Attempt.objects.get(run_id=bad.pk).error_type == "OutcomeRefused"
    assert ask(worker, [later])
