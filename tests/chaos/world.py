"""A busy installation of the long proofs: workers that are killed and replaced, and a caller."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from jobs.management.stack.programs import beat, job_worker, system_worker
from tests.chaos.bodies import Bodies
from tests.flows.installation import OPEN, Installation, installed
from tests.flows.processes import ALONE, Process
from tests.judge import Verdict
from tests.preloaded import PROJECT, Preloaded
from tests.waiting import wait_for

TASKS = "tests.tasks,tests.flows.tasks,tests.chaos.tasks"
LEFT = """
SELECT id::text, state, blocked_by, attempt_count, queued_at::text, next_at::text, history::text
FROM jobs_run WHERE ended_at IS NULL ORDER BY id LIMIT 5
"""


class Caller:
    """A web process of the scene, `tests.chaos.asked`: it submits and cancels."""

    def __init__(self, installation: Installation, **environ: str) -> None:
        # Not a pipe: it would fill up, unread, while the caller works.
        self._errors = installation.folder / "caller.log"
        self._process = Preloaded(
            ["-m", "tests.chaos.asked", str(installation.folder / "submits.log")],
            installation.variables(
                DJANGO_SETTINGS_MODULE="config.settings", FAIRSHIFT_TASKS=TASKS, **environ
            ),
            imports=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("ab"),
            text=True,
        )

    def tell(self, do: str, **facts: Any) -> None:
        """Have it do something; it may be dead already."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            print(json.dumps({"do": do, **facts}), file=self._process.stdin, flush=True)

    def answer(self) -> dict[str, Any] | None:
        """Wait for its next answer; None when it died before."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def ask(self, do: str, **facts: Any) -> dict[str, Any]:
        """Have it do something, and wait for that; fails when it dies of it."""
        self.tell(do, **facts)
        said = self.answer()
        assert said is not None, self._errors.read_text()[-3000:]
        return said

    def close(self) -> int:
        """End it when it has done all; return its exit status, below 0 when a signal ended it."""
        self._process.communicate(timeout=60)
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class World:
    """Workers, system workers and beats by name, on servers of their own."""

    def __init__(
        self,
        installation: Installation,
        *,
        workers: tuple[str, ...],
        slots: int,
        systems: tuple[str, ...] = ("system",),
        beats: tuple[str, ...] = ("beat",),
        options: Sequence[str] = ALONE,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.installation = installation
        self.workers, self._beats = workers, beats
        self._options = options
        self._environ = environ or {}
        self._programs = {name: job_worker(name, slots=slots) for name in workers}
        self._programs |= {name: system_worker(name) for name in systems}
        self._programs |= {name: beat(name) for name in beats}
        self._keys = count(1)
        self.processes: dict[str, Process] = {}
        self.log = installation.tasks
        self.bodies = Bodies(self.log.path)
        installation.begin()
        self.caller = Caller(installation)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of its programs, beside those of each process of the installation."""
        return {"FAIRSHIFT_TASKS": TASKS, **self._environ}

    def begin(self, *, seconds: float = 30) -> None:
        """Return when all of them work."""
        for name in self._programs:
            self.start(name)
        self.installation.ready(seconds=seconds)

    def end(self) -> None:
        """Leave no process behind."""
        self.caller.kill()
        self.installation.stop()

    def start(self, name: str) -> Process:
        """Start a program, or its next process when the last one has ended."""
        options = () if name in self._beats else self._options
        self.processes[name] = self.installation.start(
            self._programs[name], options=options, **self.environ
        )
        return self.processes[name]

    def replace(self, name: str) -> None:
        """Kill a program with all its children, and start another one."""
        self.processes[name].kill()
        self.start(name)

    def kill_child(self, pid: int) -> None:
        """Kill one child of a pool; the log notes it before."""
        self.log.disturb(pid, how="killed")
        os.kill(pid, signal.SIGKILL)

    def submit(self, task: str, calls: list[dict[str, Any]], **options: Any) -> list[str]:
        """Submit these calls; return the ids of their runs."""
        key = f"world-{next(self._keys)}"
        return self.caller.ask("submit", key=key, task=task, calls=calls, **options)["ids"]

    def records(self, number: int, *, seconds: float, **options: Any) -> list[str]:
        """Submit this many runs that take `seconds` each."""
        calls = [{"n": n, "seconds": seconds} for n in range(number)]
        return self.submit("tests.record", calls, **options)

    def open_count(self) -> int:
        return self.installation.count(OPEN)

    def look(self) -> Bodies:
        """Fail when a process has ended by itself; return the bodies by now."""
        for name, process in self.processes.items():
            assert process.is_alive, f"{name} ended by itself:\n{process.log_end()}"
        return self.bodies.look()

    def until(self, condition: Callable[[], bool], *, seconds: float = 360) -> None:
        """Wait for a condition; fail when a process has ended by itself before."""

        def reached() -> bool:
            self.look()
            return condition()

        wait_for(reached, seconds=seconds, what="the scene to go on")

    def at_work(self, *, least: int = 1) -> list[str]:
        """Wait for so many workers in which bodies are alive; return their names.

        To choose among more than are struck spares a run from being struck each time.
        """

        def busy() -> list[str]:
            names = self.now_at_work()
            return names if len(names) >= least else []

        return wait_for(busy, seconds=60, what=f"{least} workers at work")

    def now_at_work(self) -> list[str]:
        """Return the names of the workers in which bodies are alive."""
        bodies = self.look()
        return [name for name in self.workers if bodies.of(self.processes[name].pid)]

    def drained(self, *, seconds: float = 120) -> None:
        """Wait until every run has ended."""
        try:
            self.until(lambda: self.open_count() == 0, seconds=seconds)
        except AssertionError as error:
            left = self.installation.servers.sql(LEFT)
            raise AssertionError(f"{error}; {self.states()}, for longest: {left}") from None

    def states(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        rows = self.installation.servers.sql("SELECT state, count(*) FROM jobs_run GROUP BY state")
        return {str(state): int(str(number)) for state, number in rows}

    def verdict(self) -> Verdict:
        """Run the judge and print its report. A bad verdict fails the proof."""
        verdict = self.installation.verdict()
        print(verdict.report(), self.states())
        return verdict


@contextmanager
def world(
    folder: Path,
    *,
    workers: tuple[str, ...] = ("one", "two"),
    slots: int = 4,
    systems: tuple[str, ...] = ("system",),
    options: Sequence[str] = ALONE,
    begins: bool = True,
    **environ: str,
) -> Iterator[World]:
    """A world, at work if it `begins`; afterwards nothing of it is left."""
    with installed(folder, runs=False) as installation:
        made = World(
            installation,
            workers=workers,
            slots=slots,
            systems=systems,
            options=options,
            environ=environ,
        )
        try:
            if begins:
                made.begin()
            yield made
        finally:
            made.end()
