"""Rolling restarts under load (G20): `make chaos WHAT=deploys`, with STOPS."""

import signal
import time
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice, spread
from tests.chaos.world import World, world
from tests.waiting import wait_for

STOPS = amount("STOPS", 200)
SLACK = amount("SLACK", 0)  # seconds, of a machine that has other work
WORKERS = ("one", "two", "three")
# No backlog: what is handed back keeps its place, but its owner's submissions take turns.
WAITING = 10
# Long enough that a run that starts elsewhere in time did not wait for a lease to end.
LEASE = "30"
STOP_SECONDS = 30
ELSEWHERE_SECONDS = 5.0
# Of what was handed back: how long until its next start.
HANDED_BACK = """
SELECT extract(epoch FROM min(next.started_at) - min(back.ended_at))::float AS seconds,
    (SELECT history FROM jobs_run r WHERE r.id = back.run_id)
FROM jobs_attempt back JOIN jobs_attempt next
    ON next.run_id = back.run_id AND next.token > back.token AND next.started_at IS NOT NULL
WHERE back.outcome = 'given back' GROUP BY back.run_id ORDER BY seconds
"""
OTHERS = """
SELECT DISTINCT outcome FROM jobs_attempt WHERE outcome NOT IN ('succeeded', 'given back')
"""


@pytest.mark.chaos
def test_deploys(tmp_path: Path) -> None:
    """SIGTERM after SIGTERM: what runs ends, the rest starts elsewhere, nothing starts twice."""
    chance = dice(STOPS=STOPS)
    stops: list[float] = []
    with world(tmp_path, workers=WORKERS, slots=2, FAIRSHIFT_LEASE_SECONDS=LEASE) as scene:
        for number in range(STOPS):
            name = WORKERS[number % len(WORKERS)]
            wait_for(lambda name=name: _is_at_work(scene, name), seconds=60, what=f"{name} to work")
            time.sleep(chance.uniform(0, 0.3))  # SIGTERM comes at any moment
            stops.append(_deploy(scene, name))
        scene.drained()
        rows = scene.installation.servers.sql(HANDED_BACK)
        back = [float(str(seconds)) for seconds, _ in rows]
        print(f"{STOPS} stops: {spread(stops)}")
        print(f"{len(back)} runs handed back, started elsewhere after: {spread(back)}")
        print("the last of them:", rows[-1:])
        figures = scene.verdict().figures
        assert figures["starts"] == figures["runs"], figures
        assert scene.installation.servers.sql(OTHERS) == []
        assert set(scene.states()) == {"succeeded"}
        assert back
        assert max(back) < ELSEWHERE_SECONDS + SLACK


def _is_at_work(scene: World, name: str) -> bool:
    """Submit as well: while this worker boots, the others do the waiting runs."""
    _feed(scene)
    return name in scene.now_at_work()


def _feed(scene: World) -> None:
    """Have runs of all lengths wait, quick ones too: of these a worker holds several."""
    missing = WAITING - scene.open_count()
    if missing > 0:
        calls = [{"n": n, "seconds": (0, 0.02, 0.3)[n % 3]} for n in range(missing)]
        scene.submit("tests.record", calls)


def _deploy(scene: World, name: str) -> float:
    """Stop a worker by SIGTERM, start the next one after its end; return the seconds it took."""
    process = scene.processes.pop(name)
    began_at = time.monotonic()
    process.signal(signal.SIGTERM)
    wait_for(lambda: not process.is_alive, seconds=STOP_SECONDS, what=f"the end of {name}")
    took = time.monotonic() - began_at
    scene.start(name)
    return took
