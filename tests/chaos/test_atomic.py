"""Submits rolled back or cut off (G2): `make chaos WHAT=atomic`, with SUBMITS and KILLS."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from fleet.crash_points import KNOWN
from tests.chaos.figures import amount, dice
from tests.chaos.world import Caller, World, world

SUBMITS = amount("SUBMITS", 20_000)
KILLS = amount("KILLS", 60)
POINTS = [name for name in KNOWN if name.startswith(("submit.", "dispatch."))]
AHEAD = 50
DRAIN_SECONDS = 600


@pytest.mark.chaos
def test_atomic(tmp_path: Path) -> None:
    """A submit that was rolled back, or did not reach its COMMIT, is never visible, never runs."""
    chance = dice(SUBMITS=SUBMITS, KILLS=KILLS)
    keys = count(1)
    with world(tmp_path) as scene:
        most = SUBMITS // (KILLS + 1)
        for number in range(KILLS):
            # A pass that it comes to: half of the submits are rolled back, and dispatch nothing.
            fault = f"{POINTS[number % len(POINTS)]}:{chance.randint(1, max(1, most // 4))}"
            caller = Caller(scene.installation, FAULT=fault)
            assert not _submit(caller, chance, keys, most=2 * most), fault
            assert caller.close() < 0
            scene.look()
        while _said(scene, "intend") < SUBMITS:
            assert _submit(scene.caller, chance, keys, most=AHEAD)
            scene.look()
        scene.drained(seconds=DRAIN_SECONDS)
        verdict = scene.verdict()
        undone = _said(scene, "failed")
        print(f"{KILLS} submitters were killed; {undone} submits were rolled back")
        assert verdict.figures["starts"] == verdict.figures["runs"]
        assert 0.4 < undone / verdict.figures["submits"] < 0.6


def _submit(caller: Caller, chance: Random, keys: Iterator[int], *, most: int) -> bool:
    """Make up to this many submits, half of them rolled back; tell whether the process lives."""
    for _ in range(0, most, AHEAD):
        for _ in range(AHEAD):
            calls = [{"n": n} for n in range(chance.randint(1, 3))]
            caller.tell(
                "submit",
                key=f"atomic-{next(keys)}",
                task="tests.record",
                calls=calls,
                owner=chance.choice(["acme", "globex"]),
                rolls_back=chance.random() < 0.5,
            )
        if any(caller.answer() is None for _ in range(AHEAD)):
            return False
    return True


def _said(scene: World, event: str) -> int:
    """Return how many submits have this event in the submitters' log."""
    log = scene.installation.folder / "submits.log"
    return log.read_bytes().count(b'{"event":"%s"' % event.encode())
