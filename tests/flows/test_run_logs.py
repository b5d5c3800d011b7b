"""What runs log, on real workers: whole, or a prefix; the outcome never depends on it."""

import json
import time
from pathlib import Path

import pytest

from jobs import submit
from jobs.core.states import State
from jobs.models import Run
from jobs.runs.reads.log import Wanted
from tests.flows.installation import Installation, last
from tests.flows.processes import Layout, Processes
from tests.flows.world import ended
from tests.jobs.run_logs import lines_of
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

LAYOUT = Layout(lease=30)
LATE_SECONDS = 3.0
"""Lines are at most a second late; a busy machine gets more."""
SUBMITTED = """
from jobs import submit
print(submit("flows.log_lines", count=150, path={path!r}, pause=0.1, owner="acme").id)
"""
READ = """
import json
from jobs.models import Run
from tests.jobs.run_logs import lines_of

[run] = Run.objects.all()
print(json.dumps([run.state, [(line.attempt, line.text.split()[0]) for line in lines_of(run)]]))
"""


def numbers(run: Run, attempt: int = 1) -> list[int]:
    run.refresh_from_db()
    lines = lines_of(run, wanted=Wanted(attempt=attempt))
    return [int(line.text.split()[0]) for line in lines]


def times(path: Path) -> list[float]:
    """Return when the task logged each line."""
    return [float(line.split()[1]) for line in path.read_text().splitlines() if " " in line]


@pytest.mark.parametrize("count", [0, 1, 10_000])
def test_all_lines_are_there(stack: Processes, tmp_path: Path, count: int) -> None:
    """In their order, also those of threads; 10,000 short ones are within the limits."""
    path = str(tmp_path / "times")
    run = ended(submit("flows.log_lines", count=count, path=path, owner="acme"), seconds=60)
    assert run.state == State.SUCCEEDED
    assert numbers(run) == [*range(1, count + 1)]


def test_a_killed_worker_leaves_a_prefix(processes: Processes, tmp_path: Path) -> None:
    """Without holes, up to a second before the death; the next attempt has a log of its own."""
    worker = processes.start_worker(slots=1)
    processes.start_system_and_beat()
    processes.ready()
    path = tmp_path / "times"
    run = submit("flows.log_lines", count=300, path=str(path), pause=0.05, owner="acme")
    wait_for(lambda: path.exists() and len(times(path)) > 150, seconds=60)
    killed_at = time.time()
    worker.kill()
    before = times(path)
    found = numbers(run)
    assert found == [*range(1, len(found) + 1)]
    assert len(found) >= sum(at < killed_at - LATE_SECONDS for at in before) > 0
    processes.start_worker("other", slots=1)
    assert ended(run, seconds=90).state == State.SUCCEEDED
    assert numbers(run, attempt=2) == [*range(1, 301)]
    assert numbers(run) == found


def test_lines_outlive_an_outage_of_postgresql(installation: Installation, tmp_path: Path) -> None:
    """Each attempt has a prefix, and the one that ended has all lines."""
    path = tmp_path / "times"
    installation.run(SUBMITTED.format(path=str(path)))
    wait_for(lambda: path.exists() and len(times(path)) > 20, seconds=60)
    installation.servers.postgres.stop()
    last(5)
    installation.servers.postgres.start()
    installation.drained(seconds=180)
    state, lines = json.loads(installation.run(READ).splitlines()[-1])
    assert state == "succeeded"
    attempts = sorted({attempt for attempt, _ in lines})
    for attempt in attempts:
        found = [int(text) for number, text in lines if number == attempt]
        assert found == [*range(1, len(found) + 1)]
    assert len(found) == 150
