"""Waves while processes are killed (G30): `make chaos WHAT=waves`, with RUNS and KILLS."""

import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.flows.rollouts import STATE, assert_in_waves, assert_nothing_starts
from tests.judge import read_task_events

RUNS = amount("RUNS", 3_000)
KILLS = amount("KILLS", 20)
SIZES = (1, "1%", "10%", "100%")
SYSTEMS = ("system", "system-2")
ALWAYS = 99
"""Attempts that fail: more than a run has."""


@pytest.mark.chaos
def test_waves_follow_each_other(tmp_path: Path) -> None:
    """No body of a wave begins before the last one of the wave before has ended, whoever dies."""
    chance = dice(RUNS=RUNS, KILLS=KILLS)
    with world(tmp_path, systems=SYSTEMS) as scene:
        first_three = sum(wave_counts(RUNS)[:3])
        calls = [
            call(fails=number > first_three and chance.random() < 0.01) for number in range(RUNS)
        ]
        made = scene.caller.ask(
            "roll_out", key="waves", calls=calls, waves={"sizes": SIZES, "stop_at": "5%"}
        )
        began, killed = time.monotonic(), 0
        while scene.open_count():
            killed += strike(scene, chance, killed, most_seconds=2)
        scene.until(lambda: state_of(scene) == "ended", seconds=60)
        print(f"{RUNS} runs, {killed} kills, {time.monotonic() - began:.0f} s")
        assert_in_waves(read_task_events(scene.log.path), made["ids"], wave_counts(RUNS))
        scene.verdict()


@pytest.mark.chaos
def test_nothing_starts_after_a_stop(tmp_path: Path) -> None:
    """Bodies that begin after it are those of runs that were admitted before it."""
    chance = dice(RUNS=RUNS, KILLS=KILLS)
    with world(tmp_path, systems=SYSTEMS) as scene:
        calls = [call(fails=chance.random() < 0.05) for _ in range(RUNS)]
        made = scene.caller.ask(
            "roll_out",
            key="stops",
            calls=calls,
            waves={"sizes": ["50%", "100%"], "stop_at": RUNS // 100},
        )
        stops = killed = 0
        while scene.open_count():
            killed += strike(scene, chance, killed, most_seconds=1)
            if state_of(scene) == "stopped":
                assert_nothing_starts(scene.log.path, scene.installation.servers.sql, seconds=2)
                scene.caller.ask("resume", submission=made["submission"])
                stops += 1
        print(f"{RUNS} runs, {killed} kills, {stops} stops")
        assert stops >= 2
        assert_in_waves(read_task_events(scene.log.path), made["ids"], [RUNS // 2, RUNS // 2])
        scene.verdict()


def call(*, fails: bool) -> dict[str, Any]:
    """Return the arguments of a run that fails in all attempts, or in none."""
    return {"seconds": 0.03, "times": ALWAYS if fails else 0}


def strike(scene: World, chance: Random, killed: int, *, most_seconds: float) -> int:
    """Kill one process after some time, of any kind; later wait for a stop or the end.

    Return how many were killed.
    """
    if killed < KILLS:
        time.sleep(chance.uniform(0, most_seconds))
        scene.replace(chance.choice([*scene.workers, *SYSTEMS, "beat"]))
        return 1
    scene.until(lambda: state_of(scene) == "stopped" or not scene.open_count(), seconds=600)
    return 0


def state_of(scene: World) -> str:
    """Return the state of the rollout."""
    [[state]] = scene.installation.servers.sql(STATE)
    return str(state)


def wave_counts(total: int) -> list[int]:
    """Return the sizes of SIZES for so many runs."""
    counts = [1, -(-total // 100), -(-total // 10)]
    return [*counts, total - sum(counts)]
