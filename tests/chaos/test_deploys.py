"""Rolling deploys of two versions under load (G20): `make chaos WHAT=deploys`, with ROUNDS.

In each round the three workers are drained and stopped one after the other, and start with the
other version's code. Before the first of them, the next version's migration runs.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from jobs.management.stack.programs import job_worker
from jobs.management.stack.stack import Stack
from tests.chaos.figures import amount, dice, spread
from tests.chaos.next_version import VERSION, make_next_version, migrate, starter
from tests.chaos.world import World, world
from tests.flows.processes import ALONE, Process
from tests.waiting import wait_for

ROUNDS = amount("ROUNDS", 60)
SLACK = amount("SLACK", 0)  # seconds, of a machine that has other work
WORKERS = ("one", "two", "three")
SLOTS = 2
WAITING = 10
LONGEST_RUN_SECONDS = 1.0
ELSEWHERE_SECONDS = 5.0
SOFT_SHUTDOWN_SECONDS = 10.0
"""What a supervisor gives a worker for its runs, here: the longest one, and its own end."""
# Long enough that a run that starts elsewhere in time did not wait for a lease to end.
LEASE = "60"
DRAIN = """
UPDATE jobs_worker SET draining_since = clock_timestamp()
WHERE hostname LIKE '{name}@%' AND stopped_at IS NULL
"""
TAKES_NONE = """
SELECT count(*) FROM jobs_worker
WHERE hostname LIKE '{name}@%' AND stopped_at IS NULL AND queues = '[]'
"""
VERSIONS = """
SELECT split_part(hostname, '@', 1), version FROM jobs_worker WHERE stopped_at IS NULL
"""
WAITS = """
SELECT extract(epoch FROM started_at - created_at)::float FROM jobs_run ORDER BY 1 DESC
"""
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


class Upgrade:
    """Three workers, each with the code of this version or of the next one."""

    def __init__(self, scene: World, folder: Path, chance: Random) -> None:
        self.scene, self.chance = scene, chance
        self.next = make_next_version(folder)
        self.is_next = dict.fromkeys(WORKERS, False)
        self.stops: list[float] = []
        self._environ = scene.installation.variables(**scene.environ)

    def migrate(self) -> None:
        """Run the next version's migration, while all workers have this version's code."""
        migrate(self.next, {**self._environ, "DJANGO_SETTINGS_MODULE": "config.settings"})

    def replace(self, name: str) -> None:
        """Drain a worker, stop it when its runs have ended, and start it with the other code."""
        self.feed_until(lambda: name in self.scene.now_at_work(), what=f"{name} to work")
        time.sleep(self.chance.uniform(0, 0.3))  # the operator comes at any moment
        process = self.scene.processes.pop(name)
        began = time.monotonic()
        if self.chance.random() < 0.5:
            self._drain(name)
        process.signal(signal.SIGTERM)
        self.feed_until(lambda: not process.is_alive, what=f"the end of {name}")
        self.stops.append(time.monotonic() - began)
        self.is_next[name] = not self.is_next[name]
        self._start(name)

    def feed_until(self, condition: Callable[[], bool], *, what: str) -> None:
        """Wait for a condition, while there are always runs that wait."""

        def reached() -> bool:
            missing = WAITING - self.scene.open_count()
            if missing > 0:
                spans = (0, 0.02, 0.3, LONGEST_RUN_SECONDS)
                calls = [{"n": n, "seconds": spans[n % 4]} for n in range(missing)]
                self.scene.submit("tests.record", calls)
            return condition()

        wait_for(reached, seconds=60, what=what)

    def _drain(self, name: str) -> None:
        at = self.scene.installation
        at.statement(DRAIN.format(name=name))
        takes_none = TAKES_NONE.format(name=name)
        self.feed_until(lambda: at.count(takes_none) == 1, what=f"{name} to drain")

    def _start(self, name: str) -> None:
        scene = self.scene
        if not self.is_next[name]:
            scene.start(name)
            return
        program = job_worker(name, slots=SLOTS)
        program = replace(
            program, command=[*program.command, *ALONE], environment=dict(self._environ)
        )
        folder = scene.installation.folder / f"next-{time.monotonic_ns()}"
        stack = Stack([program], log_folder=folder, starter=starter(self.next))
        process = Process(name, stack, folder / f"{name}.log", scene.installation.tasks)
        scene.installation.started.append(process)
        scene.processes[name] = process
        stack.start()

    def has_versions(self) -> None:
        """Fail unless each worker has reported the version whose code it was started with."""

        def reported() -> bool:
            rows = self.scene.installation.servers.sql(VERSIONS)
            found = {str(name): version for name, version in rows}
            said = {name: found.get(name) == VERSION for name in WORKERS}
            return set(WORKERS) <= set(found) and said == self.is_next

        wait_for(reported, seconds=60, what=f"the versions {self.is_next}")


@pytest.mark.chaos
def test_rolling_deploys(tmp_path: Path) -> None:
    """What runs ends, the rest starts elsewhere in time, nothing is lost and nothing starts twice.

    A worker is stopped at any moment, drained before or not. Old and new code work side by side on
    the migrated database, forwards and back.
    """
    chance = dice(ROUNDS=ROUNDS)
    with world(tmp_path, workers=WORKERS, slots=SLOTS, FAIRSHIFT_LEASE_SECONDS=LEASE) as scene:
        upgrade = Upgrade(scene, tmp_path / "next", chance)
        upgrade.migrate()
        for _ in range(ROUNDS):
            for name in chance.sample(WORKERS, len(WORKERS)):
                upgrade.replace(name)
            upgrade.has_versions()
        scene.drained()
        waits = [float(str(seconds)) for (seconds,) in scene.installation.servers.sql(WAITS)]
        rows = scene.installation.servers.sql(HANDED_BACK)
        back = [float(str(seconds)) for seconds, _ in rows]
        print(f"{len(upgrade.stops)} stops: {spread(upgrade.stops)}")
        print(f"{len(waits)} runs waited for: {spread(waits)}")
        print(f"{len(back)} runs handed back, started elsewhere after: {spread(back)}")
        print("the last of them:", rows[-1:])
        figures = scene.verdict().figures
        assert figures["starts"] == figures["runs"], figures
        assert scene.installation.servers.sql(OTHERS) == []
        assert set(scene.states()) == {"succeeded"}
        assert max(upgrade.stops) < SOFT_SHUTDOWN_SECONDS + SLACK
        assert back
        assert max(back) < ELSEWHERE_SECONDS + SLACK
        assert max(waits) < SOFT_SHUTDOWN_SECONDS + SLACK
