"""Runs of many leases (G6): `make chaos WHAT=any_length`, with RUNS and LEASES."""

from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import world
from tests.flows.processes import QUICK
from tests.waiting import wait_for

RUNS = amount("RUNS", 20)
LEASES = amount("LEASES", 10)


@pytest.mark.chaos
def test_any_length(tmp_path: Path) -> None:
    """However long a live run takes, it starts once; also when Redis is emptied meanwhile."""
    dice(RUNS=RUNS, LEASES=LEASES)
    seconds = LEASES * QUICK["LEASE_SECONDS"]
    with world(tmp_path, slots=-(-RUNS // 2)) as scene:
        scene.records(RUNS, seconds=seconds, max_attempts=3)
        wait_for(lambda: len(scene.look().alive) == RUNS, seconds=60, what="all of them to run")
        half = "SELECT count(*) FROM jobs_run WHERE started_at < now() - interval '{} s'"
        passed = half.format(seconds / 2)
        wait_for(lambda: scene.installation.count(passed) == RUNS, seconds=seconds, what="half")
        assert len(scene.look().alive) == RUNS
        scene.installation.servers.client().flushall()
        scene.drained(seconds=seconds + 60)
        assert scene.verdict().figures["starts"] == RUNS
        assert scene.states() == {"succeeded": RUNS}
