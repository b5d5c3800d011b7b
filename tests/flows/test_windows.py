"""Service windows on real processes: nothing starts outside, waiting runs start inside."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from jobs import submit_many
from jobs.core.states import State
from jobs.models import Run, Submission
from tests.contrast.installation import FAKING
from tests.flows.calendar_edits import ACTS
from tests.flows.kept import open_count
from tests.flows.processes import Processes, database_url
from tests.flows.windowed import ZONES, Windowed
from tests.judge import Verdict, read_task_events
from tests.waiting import wait_for

OWNERS = ("acme", "globex", "northwind", "initech")
SHARE = 40
SECONDS = 2
Judging = Callable[..., Verdict]
WRONG_CLOCKS = {"ahead": "+3600s", "behind": "-3600s"}


@pytest.fixture
def windowed(processes: Processes) -> Windowed:
    """Customers whose calendars this process changes."""
    return Windowed(lambda act, facts: ACTS[act](**facts))


def _agree(windowed: Windowed) -> None:
    """Have each open 2 seconds and shut 2, with a phase of its own."""
    now = datetime.now(UTC)
    for number, owner in enumerate(OWNERS):
        windowed.agree(
            owner,
            first=now + timedelta(seconds=number),
            count=60,
            seconds=SECONDS,
            shut_seconds=SECONDS,
            zone=ZONES[number],
        )


def _submit(windowed: Windowed, task: str, calls: list[dict[str, Any]]) -> list[Submission]:
    submissions = []
    for owner in OWNERS:
        made = submit_many(task, calls, owner=owner, window="required", max_attempts=9)
        windowed.submitted(owner, map(str, made.runs.values_list("id", flat=True)))
        submissions.append(made)
    return submissions


def _half_ended(windowed: Windowed) -> bool:
    return open_count() <= len(windowed.asked) // 2


def test_nothing_starts_outside(windowed: Windowed, processes: Processes, verdict: Judging) -> None:
    """Not with more runs than fit into an opening, a kill, a revocation and a freeze (G14)."""
    workers = [processes.start_worker(f"worker-{number}", 4) for number in range(2)]
    processes.start_system_and_beat()
    processes.ready()
    _agree(windowed)
    chance = Random(SHARE)
    calls = [{"n": n, "seconds": chance.uniform(0.05, 0.25)} for n in range(SHARE)]
    submissions = _submit(windowed, "tests.record", calls)
    wait_for(lambda: open_count() < 4 * SHARE, seconds=40, what="the first runs")
    workers[0].kill()
    processes.start_worker("worker-2", 4)
    windowed.revoke("acme")
    windowed.freeze("globex", seconds=3)
    wait_for(lambda: _half_ended(windowed), seconds=40, what="half of the runs to end")
    windowed.approve("acme")
    wait_for(lambda: not open_count(), seconds=60, what="every run to end")
    assert set(Run.objects.values_list("state", flat=True)) == {State.SUCCEEDED}
    figures = windowed.verdict(database_url(), processes.tasks.path).figures
    assert figures["openings"] > len(OWNERS), "one opening was enough: nothing has waited"
    verdict(*submissions)


@pytest.mark.proof
def test_clocks_of_workers_decide_nothing(
    windowed: Windowed, processes: Processes, verdict: Judging
) -> None:
    """One is an hour ahead and one an hour behind: both start runs, and none outside (G14)."""
    for name, offset in WRONG_CLOCKS.items():
        processes.start_worker(name, 2, **FAKING, FAKETIME=offset)
    processes.start_system_and_beat()
    processes.ready()
    _agree(windowed)
    submissions = _submit(windowed, "tests.add", [{"x": n, "y": 1} for n in range(300)])
    wait_for(lambda: not open_count(), seconds=150, what="every run to end")
    windowed.verdict(database_url(), processes.tasks.path)
    events, now = read_task_events(processes.tasks.path), time.time()
    assert {round((event.wall - now) / 3600) for event in events} == {1, -1}
    verdict(*submissions)
