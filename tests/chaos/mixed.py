"""Everything at once: a busy installation, and a hand that kills at random, by a seed."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from fleet.stack.programs import beat, job_worker, system_worker
from fleet.stack.stack import Program
from tests.chaos.bodies import Bodies
from tests.flows.installation import OPEN, Installation
from tests.flows.processes import ALONE, Process
from tests.flows.submitters import Submitter
from tests.judge import Verdict
from tests.waiting import wait_for

RUNS = "SELECT count(*) FROM jobs_run"
PROGRAMS = {
    "one": job_worker("one", slots=4),
    "two": job_worker("two", slots=4),
    "system": system_worker(),
    "beat": beat(),
}
SUBMITTERS = 2
STEP_SECONDS = 300
DRAIN_SECONDS = 180


@dataclass
class Chaos:
    """One run of it: `run_count` runs, `kills` SIGKILLs spread over them, and the rest in scale."""

    installation: Installation
    run_count: int
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    processes: dict[str, Process] = field(default_factory=dict)
    submitters: list[Submitter] = field(default_factory=list)

    def play(self) -> Verdict:
        """Disturb the work from its first run to its last; return the judge's verdict."""
        self._random = Random(self.seed)
        self.installation.begin()
        self._bodies = Bodies(self.installation.tasks.path)
        for name in PROGRAMS:
            self._start(name)
        self.installation.ready()
        acts = self._acts()
        for number, act in enumerate(acts, start=1):
            self._until_ended(number * self.run_count // (len(acts) + 1))
            act()
            self.done[act.__name__.strip("_")] += 1
        self._until_submitted()
        wait_for(self._is_drained, seconds=DRAIN_SECONDS, what="every run to end")
        return self.installation.verdict()

    def _acts(self) -> list[Callable[[], None]]:
        """Return the acts, in a random order; 530 kills and 30 flushes for 100,000 runs."""
        scale = self.run_count / 100_000
        wanted: dict[Callable[[], None], float] = {
            self._kill_worker: 300,
            self._kill_child: 100,
            self._kill_beat: 50,
            self._kill_submitter: 50,
            self._flush: 30,
            self._kill_redis: 20,
            self._kill_postgres: 10,
        }
        acts = [act for act, count in wanted.items() for _ in range(max(1, round(count * scale)))]
        self._random.shuffle(acts)
        return acts

    # --- what is done ------------------------------------------------------------------

    def _kill_worker(self) -> None:
        name = self._random.choice(["one", "one", "two", "two", "system"])
        self.processes[name].kill()
        self._start(name)

    def _kill_beat(self) -> None:
        self.processes["beat"].kill()
        self._start("beat")

    def _kill_child(self) -> None:
        """Kill a pool child that has worked: a worker whose first children die does not start."""
        worker = self.processes[self._random.choice(["one", "two"])]
        seen = self._bodies.look().seen
        worked = {event.pid for event in seen if event.parent_pid == worker.pid}
        if children := sorted(worked & set(worker.children())):
            child = self._random.choice(children)
            self.installation.tasks.disturb(child, how="killed")
            os.kill(child, signal.SIGKILL)

    def _kill_submitter(self) -> None:
        if self.submitters:
            self.submitters.pop(0).end()

    def _flush(self) -> None:
        self.installation.servers.client().flushall()

    def _kill_redis(self) -> None:
        self.installation.servers.redis.restart()

    def _kill_postgres(self) -> None:
        self.installation.servers.postgres.restart()

    # --- between the acts --------------------------------------------------------------

    def _start(self, name: str) -> None:
        program: Program = PROGRAMS[name]
        options = ALONE if name != "beat" else ()
        self.processes[name] = self.installation.start(
            program, options=options, **self.installation.urls
        )

    def _until_ended(self, count: int) -> None:
        def far_enough() -> bool:
            self._look()
            # By the log: counting rows takes processor time from the workers.
            return len(self._bodies.look().ended_runs) >= count

        wait_for(far_enough, seconds=STEP_SECONDS, what=f"{count} runs to end")

    def _until_submitted(self) -> None:
        def enough() -> bool:
            self._look()
            return self.installation.count(RUNS) >= self.run_count

        wait_for(enough, seconds=STEP_SECONDS, what=f"{self.run_count} runs to be submitted")
        for submitter in self.submitters:
            submitter.end()

    def _is_drained(self) -> bool:
        self._look(submits=False)
        return self.installation.count(OPEN) == 0

    def _look(self, *, submits: bool = True) -> None:
        """Keep the submitters going; fail when a process has ended that was not killed."""
        for name, process in self.processes.items():
            assert process.is_alive, f"{name} ended by itself:\n{process.log_end()}"
        self.submitters = [submitter for submitter in self.submitters if submitter.is_alive]
        while submits and len(self.submitters) < SUBMITTERS:
            self.done["submitters"] += 1
            options = ("--count", "100", "--size", "20", "--seconds", "0.01", "--pause", "0.02")
            self.submitters.append(
                self.installation.submitter(
                    *options, "--attempts", "30", prefix=f"submitter{self.done['submitters']}"
                )
            )
