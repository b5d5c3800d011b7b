"""How soon lost runs start elsewhere (G5): `make chaos WHAT=recovery`, with KILLS."""

import time
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice, spread
from tests.chaos.world import World, world
from tests.flows.processes import QUICK
from tests.judge.log import TaskEvent
from tests.waiting import wait_for

KILLS = amount("KILLS", 200)
# Fewer than slots: a run that comes back waits for nothing else.
SLOTS = 4
OPEN = 8
# Of a machine that starts the next worker meanwhile.
SLACK_SECONDS = float(amount("SLACK", 3))
WORKER_SECONDS = QUICK["LEASE_SECONDS"] + QUICK["SWEEP_SECONDS"] + SLACK_SECONDS
CHILD_SECONDS = 2.0 + SLACK_SECONDS


@pytest.mark.chaos
def test_recovery(tmp_path: Path) -> None:
    """A worker's runs start elsewhere within lease and sweep, those of a pool child in seconds."""
    chance = dice(KILLS=KILLS)
    of_workers: list[float] = []
    of_children: list[float] = []
    with world(tmp_path, workers=("one", "two", "three"), slots=SLOTS) as scene:
        for number in range(KILLS):
            missing = OPEN - scene.open_count()
            if missing > 0:
                scene.records(missing, seconds=0.5)
            name = chance.choice(scene.at_work(least=2))
            bodies = wait_for(lambda name=name: _of(scene, name), seconds=60)
            killed_at = time.monotonic()
            if number % 2:
                scene.replace(name)
                of_workers.append(_restarted(scene, bodies, killed_at))
            else:
                body = chance.choice(bodies)
                scene.kill_child(body.pid)
                of_children.append(_restarted(scene, [body], killed_at))
        scene.drained()
        print(f"{len(of_workers)} kills of a worker: {spread(of_workers)}")
        print(f"{len(of_children)} kills of a pool child: {spread(of_children)}")
        assert scene.verdict().figures["lost leases"] > KILLS / 2
        assert max(of_workers) < WORKER_SECONDS
        assert max(of_children) < CHILD_SECONDS


def _of(scene: World, name: str) -> list[TaskEvent]:
    return scene.look().of(scene.processes[name].pid)


def _restarted(scene: World, bodies: list[TaskEvent], killed_at: float) -> float:
    """Wait until each run whose body was killed has begun again; return the last one's time."""

    def begun() -> list[float]:
        starts = scene.look().starts
        again = [
            [event.monotonic for event in starts[body.run] if event.token != body.token]
            for body in bodies
            # It may have ended between our look and the kill.
            if not any(
                end.run == body.run and end.token == body.token for end in scene.bodies.ended
            )
        ]
        return [max(times, default=0.0) for times in again] or [killed_at]

    times = wait_for(
        lambda: all(at >= killed_at for at in begun()) and begun(), seconds=60, what="the restart"
    )
    return max(times) - killed_at
