"""Caps and locks while workers are killed (G16): `make chaos WHAT=limits`, with KILLS."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world

KILLS = amount("KILLS", 100)
FLUSHES = amount("FLUSHES", 10)
# Eight processes in all.
WORKERS = ("one", "two", "three", "four")
SLOTS = 2
CAPS = {"capped-one": 1, "capped-three": 3}
LOCKS = ("rack", "row")
WAITING = 20


@pytest.mark.chaos
def test_limits(tmp_path: Path) -> None:
    """An owner's cap is never exceeded and runs of a lock never overlap, whoever dies when.

    Neither while dead workers' runs are recovered, nor after Redis was emptied.
    """
    chance = dice(KILLS=KILLS, FLUSHES=FLUSHES)
    with world(tmp_path, workers=WORKERS, slots=SLOTS) as scene:
        for slug, cap in CAPS.items():
            scene.caller.ask("owner", slug=slug, max_running=cap)
        runs: dict[str, set[str]] = {kind: set() for kind in (*CAPS, *LOCKS, "free")}
        flushes = set(chance.sample(range(KILLS), k=min(FLUSHES, KILLS)))
        for number in range(KILLS):
            _feed(scene, chance, runs)
            time.sleep(chance.uniform(0, 1))  # a kill comes at any moment
            scene.replace(chance.choice(scene.at_work()))
            if number in flushes:
                scene.installation.servers.client().flushall()
        scene.drained()
        bodies = scene.look()
        most = {kind: bodies.most_at_once(ids) for kind, ids in runs.items()}
        print(f"{KILLS} kills, {len(flushes)} flushes; at once {most}")
        scene.verdict()
        assert most.pop("free") > 1
        assert most == CAPS | dict.fromkeys(LOCKS, 1)


def _feed(scene: World, chance: Random, runs: dict[str, set[str]]) -> None:
    """Have enough runs of each kind wait."""
    ended = {event.run for event in scene.look().ended}
    for kind, ids in runs.items():
        missing = WAITING - len(ids - ended)
        if missing <= WAITING // 4:
            continue
        owner = {"owner": kind} if kind in CAPS else {"owner": "globex"}
        lock = {"lock": kind} if kind in LOCKS else {}
        seconds = round(chance.uniform(0.05, 0.3), 2)
        ids |= set(scene.records(missing, seconds=seconds, **owner, **lock))
