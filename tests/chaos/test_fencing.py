"""Frozen workers come too late (G4): `make chaos WHAT=fencing`, with FREEZES."""

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.flows.processes import QUICK
from tests.judge import read_task_events
from tests.waiting import wait_for

FREEZES = amount("FREEZES", 100)
WORKERS = ("one", "two", "three", "four", "five", "six")
AT_ONCE = 4
WAITING = 24
ATTEMPTS = "SELECT run_id::text, token FROM jobs_attempt WHERE outcome = 'worker lost'"


@pytest.mark.chaos
def test_fencing(tmp_path: Path) -> None:
    """An attempt that was given to another worker records neither outcome nor retry."""
    chance = dice(FREEZES=FREEZES)
    with world(tmp_path, workers=WORKERS, slots=2) as scene:
        frozen = 0
        while frozen < FREEZES:
            _feed(scene, chance)
            frozen += _freeze(scene, chance, most=min(AT_ONCE, FREEZES - frozen))
        scene.drained()
        lost = set(scene.installation.servers.sql(ATTEMPTS))
        ended = [event for event in read_task_events(scene.log.path) if event.event == "end"]
        late = [event for event in ended if (event.run, event.token) in lost]
        raised = sum(event.outcome != "returned" for event in late)
        print(f"{frozen} freezes, {len(late)} outcomes came too late, {raised} of them errors")
        scene.verdict()
        assert set(scene.states()) == {"succeeded"}
        assert len(late) > frozen / 2
        assert 0 < raised < len(late)


def _feed(scene: World, chance: Random) -> None:
    """Have enough runs wait; of those that fail, each fails twice."""
    for _ in range(scene.open_count(), WAITING, 4):
        calls = [{"seconds": chance.uniform(1, 3), "times": chance.choice([0, 2])} for _ in "1234"]
        scene.submit("chaos.stumble", calls)


def _freeze(scene: World, chance: Random, *, most: int) -> int:
    """Freeze workers in mid-run for two leases; return how many were frozen."""
    chosen = chance.sample(scene.at_work(least=most + 1), k=most)
    pids = [scene.processes[name].pid for name in chosen]
    for pid in pids:
        scene.log.disturb(pid, how="frozen")
        os.killpg(pid, signal.SIGSTOP)
    bodies = {
        body
        for pid in pids
        for body, start in scene.look().alive.items()
        if start.parent_pid == pid
    }
    time.sleep(2 * QUICK["LEASE_SECONDS"])  # the time is the fault
    for pid in pids:
        scene.log.disturb(pid, how="thawed")
        os.killpg(pid, signal.SIGCONT)
    wait_for(lambda: not bodies & set(scene.look().alive), seconds=30, what="frozen bodies to end")
    return len(pids)
