"""Waves while processes are killed (G30): `make chaos WHAT=waves`, with RUNS and KILLS."""

import json
import time
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.judge import read_task_events
from tests.judge.log import TaskEvent

RUNS = amount("RUNS", 3_000)
KILLS = amount("KILLS", 20)
SIZES = (1, "1%", "10%", "100%")
ALWAYS = 99
"""Attempts that fail: more than a run has."""
# In one statement: what a stop finds at work.
_STOPPED = """
SELECT r.state, coalesce((
    SELECT json_agg(id) FROM jobs_run
    WHERE submission_id = r.submission_id AND state IN ('admitted', 'running', 'cancelling')), '[]')
FROM jobs_rollout r
"""
_WAVES = "SELECT waves FROM jobs_rollout"


@pytest.mark.chaos
def test_waves_follow_each_other(tmp_path: Path) -> None:
    """No body of a wave begins before the last one of the wave before has ended, whoever dies."""
    chance = dice(RUNS=RUNS, KILLS=KILLS)
    with world(tmp_path, workers=("one", "two"), slots=4) as scene:
        first_three = sum(wave_counts(RUNS)[:3])
        calls = [
            call(fails=number > first_three and chance.random() < 0.01) for number in range(RUNS)
        ]
        made = scene.caller.ask(
            "roll_out", key="waves", calls=calls, waves={"sizes": SIZES, "stop_at": "5%"}
        )
        began, killed = time.monotonic(), 0
        while scene.open_count():
            if killed < KILLS:
                time.sleep(chance.uniform(0, 2))
                scene.replace(chance.choice([*scene.workers, "system", "beat"]))
                killed += 1
            else:
                scene.drained(seconds=600)
        scene.until(lambda: state_of(scene)[0] == "ended", seconds=60)
        events = read_task_events(scene.log.path)
        print(f"{RUNS} runs, {killed} kills, {time.monotonic() - began:.0f} s")
        assert_in_waves(events, made["ids"], wave_counts(RUNS))
        scene.verdict()


@pytest.mark.chaos
def test_nothing_starts_after_a_stop(tmp_path: Path) -> None:
    """Bodies that begin after it are those of runs that were admitted when it was committed."""
    chance = dice(RUNS=RUNS, KILLS=KILLS)
    with world(tmp_path, workers=("one", "two"), slots=4) as scene:
        calls = [call(fails=chance.random() < 0.05) for _ in range(RUNS)]
        made = scene.caller.ask(
            "roll_out",
            key="stops",
            calls=calls,
            waves={"sizes": ["50%", "100%"], "stop_at": RUNS // 100},
        )
        stops = 0
        while scene.open_count():
            stops += stopped(scene, chance)
            if state_of(scene)[0] == "stopped":
                scene.caller.ask("resume", submission=made["submission"])
        print(f"{RUNS} runs, {stops} stops")
        assert stops >= 2
        assert_in_waves(read_task_events(scene.log.path), made["ids"], [RUNS // 2, RUNS // 2])
        scene.verdict()


def call(*, fails: bool) -> dict[str, Any]:
    """Return the arguments of a run that fails in all attempts, or in none."""
    return {"seconds": 0.03, "times": ALWAYS if fails else 0}


def stopped(scene: World, chance: Random) -> bool:
    """Wait for a stop or the end, a worker dies meanwhile; say whether it was a stop."""
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0, 1))
        scene.replace(chance.choice(scene.workers))
    scene.until(lambda: state_of(scene)[0] == "stopped" or not scene.open_count(), seconds=300)
    before = len(read_task_events(scene.log.path))
    state, active = state_of(scene)
    if state != "stopped":
        return False
    time.sleep(2)
    later = read_task_events(scene.log.path)[before:]
    begun = {event.run for event in later if event.event == "start"}
    assert begun <= set(active), f"{len(begun - set(active))} began after the stop"
    return True


def state_of(scene: World) -> tuple[str, list[str]]:
    """Return the state of the rollout, and the ids of the runs at work at the same moment."""
    [[state, active]] = scene.installation.servers.sql(_STOPPED)
    return str(state), active if isinstance(active, list) else json.loads(str(active))


def wave_counts(total: int) -> list[int]:
    """Return the sizes of SIZES for so many runs."""
    counts = [1, -(-total // 100), -(-total // 10)]
    return [*counts, total - sum(counts)]


def assert_in_waves(events: list[TaskEvent], ids: list[str], counts: list[int]) -> None:
    """Fail unless all bodies of a wave follow all of the wave before; `ids` are in order."""
    spans: list[tuple[int, int]] = []
    start = 0
    for count in counts:
        wave = set(ids[start : start + count])
        start += count
        mine: list[Any] = [event.position for event in events if event.run in wave]
        spans.append((min(mine), max(mine)))
    print(f"waves of {counts} runs, at lines {spans}")
    for (_, last), (first, _) in pairwise(spans):
        assert last < first
