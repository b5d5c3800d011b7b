"""Every move is recorded once (G18): `make chaos WHAT=history`, with RUNS and KILLS."""

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.flows.installation import ENDED, OPEN

RUNS = amount("RUNS", 10_000)
KILLS = amount("KILLS", 40)
DRAIN_SECONDS = max(120, RUNS // 20)
"""A run has two starts and more; a slow machine had 110 starts a second."""
TOTAL = f"SELECT (SELECT count(*) FROM jobs_run), ({ENDED}), ({OPEN})"
HISTORIES = "SELECT id::text, state, history, token, ended_at IS NOT NULL FROM jobs_run"


@pytest.mark.chaos
def test_history(tmp_path: Path) -> None:
    """Whatever is killed and cancelled: no move is missing or twice, and no run out of the count.

    Submitted are those that have ended and those that are open, at every moment.
    """
    chance = dice(RUNS=RUNS, KILLS=KILLS)
    submitted: list[str] = []
    with world(tmp_path) as scene:
        for _ in range(KILLS):
            submitted += _submit(scene, chance, RUNS // KILLS)
            scene.caller.ask("cancel", ids=chance.sample(submitted[-200:], k=10))
            scene.replace(chance.choice([*scene.at_work(), "system"]))
            [(total, ended, still_open)] = scene.installation.servers.sql(TOTAL)
            assert total == len(submitted) == int(str(ended)) + int(str(still_open))
            _replay(scene)
        scene.drained(seconds=DRAIN_SECONDS)
        scene.verdict()
        _replay(scene)
        assert set(scene.states()) == {"succeeded", "failed", "cancelled", "expired"}


def _submit(scene: World, chance: Random, number: int) -> list[str]:
    """Submit runs that succeed, fail, are tried again, come late or come too late."""
    calls = [
        {"seconds": chance.choice([0, 0.02]), "times": chance.choice([0, 0, 0, 1, 9])}
        for _ in range(number // 10)
    ]
    options: list[dict[str, Any]] = chance.sample(
        [
            *({"max_attempts": 2}, {"max_attempts": 5}, {"countdown": 2.0}, {"priority": 9}),
            *({"deadline_seconds": 0.5}, {"owner": "globex"}, {}, {}, {}, {}),
        ],
        k=10,
    )
    ids: list[str] = []
    for chosen in options:
        ids += scene.submit("chaos.stumble", calls, **chosen)
    return ids


def _replay(scene: World) -> None:
    """Every history ends in its row's state, and has no move twice."""
    for run_id, state, history, token, has_ended in scene.installation.servers.sql(HISTORIES):
        assert isinstance(history, list)
        states = [entry[0] for entry in history]
        assert states[-1] == state, run_id
        assert all(one != other for one, other in pairwise(states)), (run_id, states)
        assert states.count("admitted") == token, (run_id, states)
        assert has_ended == (state in ("succeeded", "failed", "cancelled", "expired")), run_id
