"""The mixed proof; long as `make chaos WHAT=mixed`, with RUNS and SEED from the environment."""

import secrets
import time
from pathlib import Path

import pytest

from tests.chaos.figures import amount
from tests.chaos.mixed import Chaos
from tests.flows.installation import installed

RUNS = amount("RUNS", 100_000)
SEED = amount("SEED", secrets.randbelow(10**6))


@pytest.mark.parametrize(
    "run_count",
    [
        pytest.param(1_000, marks=[pytest.mark.proof, pytest.mark.smoke], id="short"),
        pytest.param(RUNS, marks=pytest.mark.chaos, id="long"),
    ],
)
def test_mixed(tmp_path: Path, run_count: int) -> None:
    """Whatever is killed, in any order: every committed run succeeds, and no other exists."""
    print(f"\nSEED={SEED} RUNS={run_count}")
    began_at = time.monotonic()
    with installed(tmp_path, runs=False) as installation:
        chaos = Chaos(installation, run_count=run_count, seed=SEED)
        try:
            verdict = chaos.play()
        finally:
            installation.stop()
            print(dict(chaos.done), f"{time.monotonic() - began_at:.0f} s")
        print(verdict.report())
        states = installation.servers.sql("SELECT state, count(*) FROM jobs_run GROUP BY state")
        assert [state for state, _ in states] == ["succeeded"], states
