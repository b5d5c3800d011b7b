"""Everything at once: a busy installation, and a hand that kills at random, by a seed.

Long as `make chaos WHAT=mixed`, with RUNS and SEED.
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.flows.submitters import Submitter

RUNS = amount("RUNS", 100_000)
SUBMITTED = "SELECT count(*) FROM jobs_run"
SUBMITTERS = 2
STEP_SECONDS = 300
DRAIN_SECONDS = 180


class Chaos:
    """Disturbs a world while submitters submit `run_count` runs and more."""

    def __init__(self, scene: World, *, run_count: int, chance: Random) -> None:
        self.scene, self.run_count = scene, run_count
        self.done: Counter[str] = Counter()
        self._chance = chance
        self._submitters: list[Submitter] = []

    def play(self) -> None:
        """Disturb the work from its first run to its last."""
        acts = self._acts()
        for number, act in enumerate(acts, start=1):
            self._until_ended(number * self.run_count // (len(acts) + 1))
            act()
            self.done[act.__name__.strip("_")] += 1
        self._until(lambda: self.scene.installation.count(SUBMITTED) >= self.run_count)
        for submitter in self._submitters:
            submitter.end()
        self.scene.drained(seconds=DRAIN_SECONDS)

    def _acts(self) -> list[Callable[[], None]]:
        """Return the acts, in a random order; 530 kills and 30 flushes for 100,000 runs."""
        servers = self.scene.installation.servers
        scale = self.run_count / 100_000

        def kill_redis() -> None:
            servers.redis.restart()

        def kill_postgres() -> None:
            servers.postgres.restart()

        def flush() -> None:
            servers.client().flushall()

        wanted: dict[Callable[[], None], float] = {
            self._kill_worker: 300,
            self._kill_child: 100,
            self._kill_beat: 50,
            self._kill_submitter: 50,
            flush: 30,
            kill_redis: 20,
            kill_postgres: 10,
        }
        acts = [act for act, count in wanted.items() for _ in range(max(1, round(count * scale)))]
        self._chance.shuffle(acts)
        return acts

    def _kill_worker(self) -> None:
        self.scene.replace(self._chance.choice(["one", "one", "two", "two", "system"]))

    def _kill_beat(self) -> None:
        self.scene.replace("beat")

    def _kill_child(self) -> None:
        """Kill a pool child that has worked: a worker whose first children die does not start."""
        worker = self.scene.processes[self._chance.choice(["one", "two"])]
        seen = self.scene.look().seen
        worked = {event.pid for event in seen if event.parent_pid == worker.pid}
        if children := sorted(worked & set(worker.children())):
            self.scene.kill_child(self._chance.choice(children))

    def _kill_submitter(self) -> None:
        if self._submitters:
            self._submitters.pop(0).end()

    def _until_ended(self, count: int) -> None:
        # By the log: counting rows takes processor time from the workers.
        self._until(lambda: len(self.scene.bodies.ended_runs) >= count)

    def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, and keep the submitters going meanwhile."""

        def reached() -> bool:
            self._submitters = [one for one in self._submitters if one.is_alive]
            while len(self._submitters) < SUBMITTERS:
                self.done["submitters"] += 1
                options = ("--count", "100", "--size", "20", "--seconds", "0.01", "--pause", "0.02")
                self._submitters.append(
                    self.scene.installation.submitter(
                        *options, "--attempts", "30", prefix=f"submitter{self.done['submitters']}"
                    )
                )
            return condition()

        self.scene.until(reached, seconds=STEP_SECONDS)


@pytest.mark.parametrize(
    "run_count",
    [
        pytest.param(1_000, marks=[pytest.mark.proof, pytest.mark.smoke], id="short"),
        pytest.param(RUNS, marks=pytest.mark.chaos, id="long"),
    ],
)
def test_mixed(tmp_path: Path, run_count: int) -> None:
    """Whatever is killed, in any order: every committed run succeeds, and no other exists."""
    chance = dice(RUNS=run_count)
    began_at = time.monotonic()
    with world(tmp_path) as scene:
        chaos = Chaos(scene, run_count=run_count, chance=chance)
        try:
            chaos.play()
        finally:
            print(dict(chaos.done), f"{time.monotonic() - began_at:.0f} s")
        scene.verdict()
        assert set(scene.states()) == {"succeeded"}
