"""Without a fault nothing starts twice (G3): `make chaos WHAT=doubles`, with RUNS and REPLAYS."""

import time
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import Caller, world

RUNS = amount("RUNS", 100_000)
REPLAYS = amount("REPLAYS", 5)
CHUNK = 1_000
MOST_OPEN = 5_000
DRAIN_SECONDS = 600
TOKENS = "SELECT count(*) FROM jobs_run WHERE token <> 1"


@pytest.mark.chaos
def test_doubles(tmp_path: Path) -> None:
    """Each run starts once; also when its hint comes again, while it waits, runs or has ended."""
    dice(RUNS=RUNS, REPLAYS=REPLAYS)
    began_at = time.monotonic()
    with world(tmp_path, slots=2, FAIRSHIFT_LEASE_SECONDS="30") as scene:
        replayer = Caller(scene.installation)
        for start in range(0, RUNS, CHUNK):
            ids = scene.records(min(CHUNK, RUNS - start), seconds=0)
            replayer.ask("replay", ids=ids, times=REPLAYS, task="tests.record")
            # Hints of ended and of waiting runs are replayed.
            scene.until(lambda: scene.open_count() <= MOST_OPEN)
        scene.drained(seconds=DRAIN_SECONDS)
        replayer.close()
        figures = scene.verdict().figures
        print(f"{RUNS} runs and {RUNS * REPLAYS} replays in {time.monotonic() - began_at:.0f} s")
        assert figures["starts"] == figures["runs"] == RUNS
        assert scene.installation.count(TOKENS) == 0
        assert scene.states() == {"succeeded": RUNS}
