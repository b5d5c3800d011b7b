"""Tasks that do everything wrong: each ends as it should, and the next run is unaffected."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from celery.result import AsyncResult

from jobs import submit
from jobs.core.states import State
from jobs.models import Run
from tests.flows.processes import Layout, Processes
from tests.flows.world import bodies, ended, outcomes
from tests.judge import TaskLog

# One slot: the run after a bad one comes into the same process, if that one lives.
KEPT = Layout(1, 1, lease=30)
RECYCLED = Layout(1, 8, ("--max-tasks-per-child", "1"), lease=30)


def layouts(**choices: Layout) -> pytest.MarkDecorator:
    given = [
        pytest.param(layout, id=name, marks=pytest.mark.proof if layout is RECYCLED else ())
        for name, layout in choices.items()
    ]
    return pytest.mark.parametrize("layout", given, indirect=True, scope="module")


kept = layouts(kept=KEPT)
kept_and_recycled = layouts(kept=KEPT, recycled=RECYCLED)


@dataclass
class Case:
    """A way to misbehave, in every attempt, and what the run must look like afterwards.

    `tests/fleet/worker/test_child.py` has more errors and results.
    """

    way: str
    error: str
    says: str
    outcome: str = "failed"
    options: dict[str, Any] = field(default_factory=dict)
    child_lives: bool = True


SOFT = {"soft_time_limit_seconds": 0.3, "time_limit_seconds": 20}
HARD = {"soft_time_limit_seconds": 0.2, "time_limit_seconds": 0.7}

CASES = [
    Case("value_error", "ValueError", "the device said no"),
    Case("system_exit", "SystemExit", "3"),
    Case("unpicklable", "UnpicklableError", "holds a lock"),
    Case("one_megabyte", "ValueError", "characters left out"),
    Case("speechless", "SpeechlessError", "its text could not be read"),
    Case("set", "ResultError", "set"),
    Case("huge", "ResultError", "262,144"),
    Case("hang", "SoftTimeLimitExceeded", "soft time limit", options=SOFT),
    Case("hang_on", "TimeLimitExceeded", "of 0.7 s", "time limit", HARD, child_lives=False),
    Case("exit", "WorkerLostError", "exit", "child lost", child_lives=False),
    Case("segv", "WorkerLostError", "SIGSEGV", "child lost", child_lives=False),
]


def _play(case: Case) -> tuple[Run, Run]:
    """Submit a bad run and, behind it, a good one."""
    options = {"max_attempts": 2, **case.options}
    bad = submit("flows.misbehave", way=case.way, owner="acme", **options)
    return bad, submit("tests.record", n=1, owner="acme")


def _is_like(run: Run, case: Case) -> None:
    last = "retrying" if case.outcome == "failed" else case.outcome
    assert run.state == State.FAILED, case.way
    assert outcomes(run) == [last, case.outcome], case.way
    assert (run.error_type, case.says in run.error_message) == (case.error, True), (
        f"{case.way}: {run.error_type}: {run.error_message[:500]}"
    )
    for attempt in run.attempts:
        assert attempt.error_type == case.error
        assert len(attempt.error_message) < 3_000
        assert len(attempt.traceback) < 17_000
        assert not case.child_lives or case.error in attempt.traceback, case.way


def _pid(log: TaskLog, run: Run) -> int:
    return bodies(log, run)[0].pid


@kept_and_recycled
def test_each_way_ends_well(stack: Processes, verdict: Any, layout: Layout) -> None:
    """Right state, attempts and readable error; the next run in that process is unaffected."""
    played = [(case, *_play(case)) for case in CASES]
    runs = []
    for case, submitted, next_one in played:
        bad, good = ended(submitted, seconds=60), ended(next_one)
        _is_like(bad, case)
        assert outcomes(good) == ["succeeded"], case.way
        is_same_process = _pid(stack.tasks, bad) == _pid(stack.tasks, good)
        assert is_same_process == (case.child_lives and layout == KEPT), case.way
        runs += [bad, good]
    assert verdict(*runs).figures["starts"] == 3 * len(CASES)


@kept_and_recycled
@pytest.mark.parametrize("task", ["break_transaction", "close_connection", "fork_child"])
def test_a_task_may_ruin_its_surroundings(stack: Processes, verdict: Any, task: str) -> None:
    """It succeeds, also for Celery; the next run in that process finds a sound database."""
    ruined = submit(f"tests.{task}", owner="acme", ignore_result=False)
    after = [submit("flows.count_owners", owner="acme") for _ in range(2)]
    runs = [ended(run) for run in (ruined, *after)]
    assert [outcomes(run) for run in runs] == [["succeeded"]] * 3
    assert [run.result_value for run in runs[1:]] == [1, 1]
    assert AsyncResult(str(ruined.id)).get(timeout=300) == runs[0].result_value
    verdict(*runs)


@kept
def test_celerys_own_retry_waits_in_the_row(stack: Processes, verdict: Any) -> None:
    """`autoretry_for` tries again, bounded by the run's own attempts and not by the task's."""
    runs = [
        ended(submit("flows.autoretry", times=1, owner="acme", max_attempts=3)),
        ended(submit("flows.autoretry", times=9, owner="acme", max_attempts=2)),
    ]
    assert [outcomes(run) for run in runs] == [["retrying", "succeeded"], ["retrying", "failed"]]
    verdict(*runs)
