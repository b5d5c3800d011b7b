"""Processes of a worker's pool that end while they boot: the worker tries again, up to a limit."""

from pathlib import Path
from typing import Any

import pytest

from fleet.stack.stack import StackError
from jobs import submit
from tests.flows.processes import Process, Processes
from tests.flows.world import ended, outcomes
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


def _start(
    processes: Processes, tmp_path: Path, *, failing: int, slots: int, **environ: str
) -> Process:
    tasks = "tests.tasks,tests.flows.tasks,tests.flows.failing_boots"
    environ |= {"BOOTS": str(tmp_path / "boots"), "BOOTS_THAT_FAIL": str(failing)}
    return processes.start_worker("one", slots, FAIRSHIFT_TASKS=tasks, **environ)


@pytest.mark.parametrize("slots", [1, 2])
def test_a_worker_outlives_processes_that_end_while_they_boot(
    processes: Processes, verdict: Any, tmp_path: Path, slots: int
) -> None:
    """Each try has a line in the log; the first process that boots takes the work."""
    worker = _start(processes, tmp_path, failing=3, slots=slots)
    worker.ready()
    run = ended(submit("tests.record", n=1, owner="acme"))
    assert outcomes(run) == ["succeeded"]

    def tries() -> int:
        return worker.log.read_text().count("ended while it booted (exitcode 1): next try in")

    # One of two may take the work while the other one is still at its third try.
    wait_for(lambda: tries() == 3, seconds=10, what="a line of each try")
    assert "next try in 0.1 s, 1 of 10" in worker.log.read_text()
    assert worker.is_alive
    verdict(run)


@pytest.mark.parametrize("slots", [1, 2])
def test_a_worker_whose_processes_never_boot_ends(
    processes: Processes, tmp_path: Path, slots: int
) -> None:
    """With an error, after its last try: otherwise its supervisor would not know."""
    worker = _start(processes, tmp_path, failing=1000, slots=slots, BOOT_TRIES="4")
    wait_for(lambda: not worker.is_alive, seconds=30, what="the worker's end")
    log = worker.log.read_text()
    assert "(exitcode 1): next try in 0.4 s, 3 of 4" in log
    assert "(exitcode 1): 4 tries in a row have failed, the worker ends" in log
    with pytest.raises(StackError, match="ended with 1"):
        worker.stack.watch()
    assert (tmp_path / "boots").stat().st_size == 4 * slots
