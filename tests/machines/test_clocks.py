"""Machines with wrong clocks (G19): beats, workers and web, each alone and mixed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.figures import spread
from tests.judge import read_submit_events, read_task_events
from tests.judge.sqlreader import read_triggered
from tests.machines.faults import Hand
from tests.machines.installation import BEATS, WORKERS, Installation, installed
from tests.machines.needs import lacking
from tests.machines.play import judge
from tests.machines.work import WINDOWED
from tests.waiting import wait_for

OFFSETS = (-300, -90, 90, 300)
KINDS = {"beats": BEATS, "workers": ("system", *WORKERS), "web": ("web",)}
MIXED = {
    **dict(zip(("beat1", "beat2", "system", "web"), (-90, -300, 300, 90), strict=True)),
    **dict(zip(WORKERS, (90, -300, 300), strict=True)),
}
SHORT_LEASE = {"FAIRSHIFT_LEASE_SECONDS": "6", "FAIRSHIFT_HEARTBEAT_SECONDS": "1.5"}
"""So that rescue has work under each clock."""
GRACE_SECONDS = 60.0
"""A due time that is later than this counts as missed; no other promise is longer."""
WAIT_SECONDS = 10.0
"""Longer than a lease and a round take; a slow machine has more (`wait_for`)."""
RUNS = 300
SECONDS = 150.0

pytestmark = pytest.mark.proof


@pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is missing")
def test_no_clock_stops_anything(tmp_path: Path) -> None:
    """While any of them are wrong, promotion, sweep and rescue go on, and due times are met.

    A clock is stepped while its program runs. The next one is stepped when under this one runs
    that were due later, runs whose hint was lost and a run of a lost worker have started.
    """
    with installed(tmp_path, sets_clocks=True, **SHORT_LEASE) as at:

        def faults(_hand: Hand) -> None:
            for number, (what, clocks) in enumerate(_clocks().items()):
                at.set_clocks(clocks)
                Phase(at, number).play(what)
            at.set_clocks({})

        judge(at, faults, runs=RUNS, seconds=SECONDS, chance=Random(1))
        late = _lateness(at)
        print(f"due times: {len(late)}, started after {spread(late)}")
        assert min(late) >= 0 and max(late) < GRACE_SECONDS


def _clocks() -> dict[str, Mapping[str, int]]:
    """Return what is wrong in turn, by its name: seconds by machine."""
    alone = {
        f"{kind} {offset:+d} s": dict.fromkeys(machines, offset)
        for kind, machines in KINDS.items()
        for offset in OFFSETS
    }
    turned = {name: -seconds for name, seconds in MIXED.items()}
    return {**alone, "all differ": MIXED, "all differ the other way": turned}


class Phase:
    """The time in which some clocks are wrong."""

    def __init__(self, at: Installation, number: int) -> None:
        self._at, self._number = at, number

    def play(self, what: str) -> None:
        """Return when each of the system's rounds has done its work; print how long it took."""
        lost = self._submit("lost", 1, arguments={"seconds": 10})
        self._started(lost)
        self._kill_worker_of(*lost)
        killed_at = time.monotonic()
        web, *caches = (self._at.machines[name] for name in ("web", "cache1", "cache2"))
        web.cut(*caches)
        unpublished = self._submit("unpublished", 2)
        web.heal()
        healed_at = time.monotonic()
        later = self._submit("later", 2, countdown=1)
        submitted_at = time.monotonic()
        figures = {
            "swept after": self._started(unpublished) - healed_at,
            "promoted after": self._started(later) - submitted_at,
            "rescued after": self._started(lost, times=2) - killed_at,
        }
        print(f"{what}:", ", ".join(f"{name} {took:.1f} s" for name, took in figures.items()))

    def _submit(self, name: str, count: int, **fields: Any) -> list[str]:
        """Submit runs over HTTP, of owners without windows; return their ids."""
        at, log = self._at, self._at.folder / "submits.log"
        name, url = f"{name}-{self._number}", f"http://{at.machines['web'].address}:8000"
        words = [str(log), url, at.token, str(count), "10", "1", name, str(WINDOWED)]
        at.run("caller", "-m", "tests.machines.caller", *words, json.dumps(fields))
        events = read_submit_events(log)
        return [id_ for event in events for id_ in event.ids if event.key.startswith(f"{name}-")]

    def _started(self, runs: list[str], *, times: int = 1) -> float:
        """Wait until each of these has begun so many times; return when the last one did."""

        def moments() -> list[float]:
            self._at.watch()
            found = [self._starts_of(run) for run in runs]
            is_done = all(len(each) >= times for each in found)
            return [each[-1].monotonic for each in found] if is_done else []

        what = f"{times} starts of {', '.join(runs)}"
        return max(wait_for(moments, seconds=WAIT_SECONDS, what=what, every=0.2))

    def _kill_worker_of(self, run: str) -> None:
        """Kill the worker that has a run, with all its processes."""
        workers = {self._at.pid(name): name for name in WORKERS}
        [start] = self._starts_of(run)
        self._at.tasks.disturb(start.parent_pid, how="killed")
        self._at.stack(workers[start.parent_pid]).kill_group(workers[start.parent_pid])

    def _starts_of(self, run: str) -> list[Any]:
        events = read_task_events(self._at.tasks.path)
        return [one for one in events if one.event == "start" and one.run == run]


def _lateness(at: Installation) -> list[float]:
    """Return how long after their due times the bodies of recurring jobs began, in seconds.

    By the monotonic clock that all machines share: the machines' own clocks are wrong.
    """
    ahead = time.time() - time.monotonic()
    triggered, _ = read_triggered(at.primary.url)
    due = {
        row.run_id: row.due_at.timestamp() - ahead for row in triggered if row.key != "of no job"
    }
    first: dict[str, float] = {}
    for event in read_task_events(at.tasks.path):
        if event.event == "start" and event.run in due:
            first.setdefault(event.run, event.monotonic)
    return [first[run] - moment for run, moment in due.items()]
