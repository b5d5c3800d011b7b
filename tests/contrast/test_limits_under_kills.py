"""Caps and locks of owners while workers are killed, judged from what the tasks wrote."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from django.conf import settings

from fleet.broker.broker import Broker
from fleet.broker.owners import Owners, OwnerSettings
from tests.contrast.caller import Caller
from tests.contrast.installation import Contrast, contrast
from tests.waiting import wait_for

WORKERS = 3
SLOTS = 2
LEASE = "2"

CAPS = {"one": 1, "three": 3}
LOCKS = {"x": 1, "y": 1}
WAITING = 20
"""So many of each kind wait at least, until the last kill."""


@dataclass
class Killing:
    """Workers on one fair queue that are killed and replaced, and what they are given to run."""

    scene: Contrast
    caller: Caller
    dice: random.Random
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    died_at: dict[int, float] = field(default_factory=dict)
    published: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def feed(self) -> None:
        """Have enough of each kind wait; names begin with the cap or lock that holds them."""
        ended = set(self.scene.said("end"))
        waiting = [name for name in self.published if name not in ended]
        for kind in (*CAPS, *LOCKS, "free"):
            for _ in range(WAITING - sum(name.startswith(f"{kind}-") for name in waiting)):
                self._publish(kind)

    def _publish(self, kind: str) -> None:
        name = f"{kind}-{next(self.numbers)}"
        facts = {"owner": kind} if kind in CAPS else {"owner": "locked", "submission": kind}
        if kind in LOCKS:
            facts["lock"] = kind
        self.published.append(name)
        seconds = self.dice.uniform(0.02, 0.12)
        self.caller.call("run", name, seconds, headers={"fairshift": facts})

    def start(self, *, wait: bool) -> None:
        self.workers.append(self.scene.worker(slots=SLOTS, wait=wait))

    def kill(self) -> None:
        """Kill one that is at work, and note which processes ended when."""
        worker = self.dice.choice(wait_for(self._at_work, what="a worker at work"))
        # Nothing of it goes on while we look which processes it has.
        os.killpg(worker.pid, signal.SIGSTOP)
        pids = _group(worker.pid)
        self.scene.kill(worker)
        self.died_at.update(dict.fromkeys(pids, time.time()))
        self.workers.remove(worker)

    def _at_work(self) -> list[subprocess.Popen[bytes]]:
        """Return the workers that have run something: others may still be starting."""
        pids = {line.pid for line in self.scene.lines}
        return [worker for worker in self.workers if pids & set(_group(worker.pid))]

    def running(self) -> dict[str, int]:
        """Return how many leases each capped owner has, those of dead workers counted."""
        owners = Owners(Broker(self.caller.app), [self.scene.queue])
        look = owners.snapshot(*CAPS, timeout=5)
        return {name: look.owners[name].running for name in CAPS}


def _group(leader: int) -> list[int]:
    """Return the processes of a process group."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _name, facts = path.read_text().rsplit(")", 1)
        except OSError:
            continue  # it has ended meanwhile
        if int(facts.split()[2]) == leader:
            pids.append(int(path.parent.name))
    return pids


def _spans(killing: Killing, kind: str) -> list[tuple[float, float]]:
    """Return when each run of a kind began and ended; a killed one ended when its process did."""
    lines = [line for line in killing.scene.lines if line.name.startswith(f"{kind}-")]
    ends = {(line.name, line.pid): line.at for line in lines if line.word == "end"}
    return [
        (line.at, ends.get((line.name, line.pid)) or killing.died_at[line.pid])
        for line in lines
        if line.word == "start"
    ]


def _most_at_once(spans: list[tuple[float, float]]) -> int:
    """Return how many of these were alive together at most."""
    # An end comes before a begin of the same moment.
    moves = sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans])
    alive = most = 0
    for _, move in moves:
        alive += move
        most = max(most, alive)
    return most


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.chaos)])
def test_limits_hold_while_workers_are_killed(tmp_path: Path, kills: int) -> None:
    """An owner's cap is never exceeded and a lock's runs never overlap, whoever dies when.

    What a dead worker held counts until its lease ends. Nothing is lost, each cap is reached,
    and what starts twice was held by a worker that died.
    """
    seed = os.environ.get("SEED") or str(random.randrange(10**6))
    print("SEED", seed)
    began_at = time.monotonic()
    with contrast("fair", tmp_path, settings.REDIS_URL, CONTRAST_LEASE=LEASE) as scene:
        caller = Caller(scene, fair=[scene.queue])
        killing = Killing(scene, caller, random.Random(seed))
        limits = [OwnerSettings(name, max_running=cap) for name, cap in CAPS.items()]
        Owners(Broker(caller.app), [scene.queue]).set(limits, timeout=5)
        killing.feed()
        for _ in range(WORKERS):
            killing.start(wait=False)
        for worker in killing.workers:
            scene.await_ready(worker)
        for _ in range(kills):
            time.sleep(killing.dice.uniform(0.1, 0.8))  # a kill comes at any moment
            killing.feed()
            killing.kill()
            killing.start(wait=False)
            assert all(number <= CAPS[name] for name, number in killing.running().items())
        wait_for(
            lambda: set(scene.said("end")) == set(killing.published),
            seconds=60,
            what="the end of all that was published",
        )
        caller.await_idle()
        kinds = {**CAPS, **LOCKS}
        most = {kind: _most_at_once(_spans(killing, kind)) for kind in kinds}
        starts = scene.said("start")
        cut = len(starts) - len(scene.said("end"))
        doubled = len(starts) - len(set(starts))
        print(
            f"{kills} kills in {time.monotonic() - began_at:.0f} s: {len(killing.published)} "
            f"published, 0 lost, {cut} cut off, {doubled} started again; at once {most}"
        )
        assert all(most[kind] <= limit for kind, limit in kinds.items())
        # In a few seconds on a busy machine three are not always at work at once.
        assert most == kinds or (kills < 100 and most["three"] == 2)
        assert cut <= doubled <= 4 * kills
        caller.close()
