"""cost: what a durable run costs with 1, 2 and 4 workers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from jobs.management.stack.programs import beat, job_worker, system_worker
from jobs.management.stack.stack import Stack
from tests.benchmarks.members.durable import submitted, wait_recorded
from tests.benchmarks.rows import Row
from tests.benchmarks.scale.cost import cost_of_a_run, without_idle
from tests.benchmarks.scale.measured import (
    IDLE,
    SLOTS,
    SUBMIT,
    SUBMIT_MANY,
    TASK_MS,
    point_name,
)
from tests.benchmarks.scale.readings import MAIN, bytes_on_disk, reading
from tests.benchmarks.world import START_SECONDS, World

WORKERS: Final = (1, 2, 4)
MOST_RATE: Final = 2_500.0
"""Runs a second that are expected at most: it decides how many runs are submitted."""
OWNERS: Final = 10
WINDOW: Final = (0.25, 0.85)
"""The parts of the runs that have ended when the two readings are taken: all slots are busy."""
SETTLE_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.01
PATIENCE_SECONDS: Final = 60.0
LINES: Final = 10
WITH_LINES: Final = f"{point_name(1, 0)}, {LINES} log lines each"
CALLS: Final = 10
"""Calls of `submit_many`, each for an owner of its own."""

Samples = dict[str, list[float]]


def measure(world: World) -> list[Row]:
    """Measure submits, an idle worker and runs; commits are durable."""
    world.commits_are_durable()
    found: dict[str, Samples] = defaultdict(lambda: defaultdict(list))

    def add(what: str, cost: Mapping[str, float]) -> None:
        for name, value in cost.items():
            found[what][name].append(value)

    for number in world.turns():
        world.begin()
        add(SUBMIT_MANY, _submits(world, is_single=False))
        add(SUBMIT, _submits(world, is_single=True))
        for workers in WORKERS:
            with _up(world, workers) as busy:
                if workers == 1:
                    idle = busy.idle(world.pick(10, 3))
                    add(IDLE, idle)
                for ms in TASK_MS:
                    cost = busy.cost(ms, label=f"r{number}")
                    add(point_name(workers, ms), without_idle(cost, idle))
                if workers == 1:
                    cost = busy.cost(0, label=f"r{number}-lines", lines=LINES)
                    add(WITH_LINES, without_idle(cost, idle))
    return _rows(found)


def _rows(found: Mapping[str, Samples]) -> list[Row]:
    without, with_lines = (
        median(found[what]["WAL bytes"]) for what in (point_name(1, 0), WITH_LINES)
    )
    a_line = Row(what="WAL of a log line", unit="bytes", figure=(with_lines - without) / LINES)
    return [
        Row(what=what, unit=unit, figure=median(samples[unit]), samples=samples)
        for what, samples in found.items()
        for unit in ["CPU ms/s" if what == IDLE else "runs/s"]
    ] + [a_line]


@contextmanager
def _up(world: World, workers: int) -> Iterator[_Busy]:
    """Start workers, the system worker and beat; all have done something."""
    world.begin()
    names = [f"fair-{number}" for number in range(workers)]
    programs = [job_worker(name, slots=SLOTS) for name in names]
    with world.up(*programs, system_worker(), beat()) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        kinds = {**dict.fromkeys(names, MAIN), "system": "system worker", "beat": "beat"}
        pids = {stack.pid(name): kind for name, kind in kinds.items()}
        wait_recorded(world, stack, _submitted("warm", 0.0, 20 * SLOTS * workers))
        yield _Busy(world, stack, workers, {pid: kind for pid, kind in pids.items() if pid})


def _submitted(label: str, seconds: float, count: int, *, lines: int = 0) -> Sequence[int]:
    owners = [f"{label}-{number}" for number in range(OWNERS)]
    arguments = {"owner": label, "seconds": seconds, "lines": lines}
    return submitted(owners, count=count, task="bench.work", arguments=arguments)


def _submits(world: World, *, is_single: bool) -> dict[str, float]:
    """Return what a submit costs while no worker is up."""
    from jobs import submit, submit_many
    from jobs.models import Owner

    owners = [Owner.objects.get_or_create(slug=f"submit-{number}")[0] for number in range(CALLS)]
    each = world.pick(100, 10) if is_single else world.pick(1_000, 200)
    arguments = {"owner": "submit", "seconds": 0.0}
    submit("bench.work", owner=owners[0], arguments=arguments)  # the connection opens
    before = reading(world)
    for owner in owners:
        if is_single:
            for _ in range(each):
                submit("bench.work", owner=owner, arguments=arguments)
        else:
            submit_many("bench.work", [arguments] * each, owner=owner)
    return cost_of_a_run(before, reading(world), runs=each * CALLS)


@dataclass(frozen=True)
class _Busy:
    """Workers that are up; `mains` are all main processes, each with its kind."""

    world: World
    stack: Stack
    workers: int
    mains: Mapping[int, str]

    def idle(self, seconds: int) -> dict[str, float]:
        """Return what all of it uses in a second without runs."""
        time.sleep(SETTLE_SECONDS)
        before = reading(self.world, mains=self.mains)
        time.sleep(seconds)
        after = reading(self.world, mains=self.mains)
        # A "run" is a second.
        cost = cost_of_a_run(before, after, runs=1)
        found = {name: value / (after.at - before.at) for name, value in cost.items()}
        ours = sum(value for name, value in found.items() if name.startswith("CPU µs"))
        return found | {"CPU ms/s": ours / 1000, "cores of others": cost["cores of others"]}

    def cost(self, ms: int, *, label: str, lines: int = 0) -> dict[str, float]:
        """Return the cost of a run while every slot has work, and the runs a second."""
        label = f"{label}-{self.workers}-{ms}ms"
        slots = self.workers * SLOTS
        rate = min(MOST_RATE, slots / ms * 1000) if ms else MOST_RATE
        count = int(rate * self.world.pick(5, 2)) // OWNERS * OWNERS
        size, log = bytes_on_disk(), _Log(self.world)
        submissions = _submitted(label, ms / 1000, count, lines=lines)
        readings = []
        for part in WINDOW:
            log.wait(self.stack, int(part * count))
            readings.append(reading(self.world, mains=self.mains))
        wait_recorded(self.world, self.stack, submissions)
        before, after = readings
        ended = [ran.ended for ran in self.world.ran() if ran.owner == label]
        runs = sum(before.at < at <= after.at for at in ended)
        cost = cost_of_a_run(before, after, runs=runs)
        connections = after.connections
        return cost | {
            "bytes on disk": (bytes_on_disk() - size) / count,
            "connections of PostgreSQL": connections[0],
            "connections of Redis": connections[1],
        }


class _Log:
    """The tasks' log from a moment on: counts lines, and parses none meanwhile."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._at = world.log.stat().st_size
        self._lines = 0

    def wait(self, stack: Stack, want: int) -> None:
        """Return when it has this many lines more."""
        self._world.wait(
            lambda: self._count() >= want,
            what=lambda: f"{self._lines} of {want} runs have ended",
            seconds=PATIENCE_SECONDS,
            every=POLL_SECONDS,
            stack=stack,
        )

    def _count(self) -> int:
        with self._world.log.open("rb") as log:
            log.seek(self._at)
            new = log.read()
        self._at += len(new)
        self._lines += new.count(b"\n")
        return self._lines
