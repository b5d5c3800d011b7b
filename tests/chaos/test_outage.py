"""Servers that hang or are gone (G21): `make chaos WHAT=outage`, with ROUNDS."""

import time
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice, spread
from tests.chaos.world import World, world
from tests.flows.breaking import Break, dropped, hung, killed
from tests.flows.installation import ENDED
from tests.flows.submitters import Submitter

ROUNDS = amount("ROUNDS", 3)
# Longer than a worker waits for Redis (`socket_timeout`), as the lease of an installation is.
LEASE_SECONDS = amount("LEASE", 8)
FAULT_SECONDS = 2 * LEASE_SECONDS
LOST = """
SELECT outcome, error_message, count(*) FROM jobs_attempt WHERE outcome <> 'succeeded'
GROUP BY outcome, error_message
"""
SUBMIT_SECONDS = 2.0
RESUMED_SECONDS = 10.0
WAYS: dict[str, Break] = {
    "postgres": hung("postgres"),
    "redis": hung("redis"),
    "both": hung("postgres", "redis"),
    "killed": killed("postgres"),
    "dropped": dropped,
}
"""What hangs; or the processes of PostgreSQL, or its connections, end."""


@pytest.mark.chaos
@pytest.mark.parametrize("how", WAYS)
def test_outage(tmp_path: Path, how: str) -> None:
    """Workers stay up, nothing is lost, work continues soon; submits do not wait for Redis."""
    dice(ROUNDS=ROUNDS)
    resumed: list[float] = []
    with world(tmp_path, FAIRSHIFT_LEASE_SECONDS=str(LEASE_SECONDS)) as scene:
        steady = _submitter(scene, "--count", str(100 * ROUNDS), "--pause", "0.2")
        for number in range(ROUNDS):
            before = scene.installation.count(ENDED)
            scene.until(lambda before=before: scene.installation.count(ENDED) > before + 20)
            with WAYS[how](scene.installation):
                held = _submitter(scene, "--count", "20", "--pause", "0.3", prefix=f"in{number}")
                time.sleep(FAULT_SECONDS)  # the time is the fault
            resumed.append(scene.installation.caught_up())
            scene.look()
            held.wait()
        waits = steady.waits(seconds=200)
        scene.drained()
        print(f"{how}, {ROUNDS} times: resumed after {spread(resumed)}; submits: {spread(waits)}")
        print(scene.installation.servers.sql(LOST))
        figures = scene.verdict().figures
        assert figures["starts"] <= figures["runs"] + figures["lost leases"]
        assert set(scene.states()) == {"succeeded"}
        assert max(resumed) < RESUMED_SECONDS
        if how == "redis":
            assert figures["starts"] == figures["runs"], "PostgreSQL heard of every worker"
            assert max(waits) < SUBMIT_SECONDS


def _submitter(scene: World, *options: str, prefix: str = "steady") -> Submitter:
    return scene.installation.submitter(*options, "--seconds", "0.2", prefix=prefix)
