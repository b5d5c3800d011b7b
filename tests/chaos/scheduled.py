"""An installation with recurring jobs, killed and frozen at random by a seed."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.world import World
from tests.flows.installation import Installation, installed
from tests.flows.recurring import ZONES, Recurring, job_of

# Longer than a worker waits for a Redis that hangs (`socket_timeout`).
ENVIRON = {
    "FAIRSHIFT_LEASE_SECONDS": "8",
    "FAIRSHIFT_MISFIRE_GRACE_SECONDS": "10",
}
CRONS = ("* * * * *", "*/2 * * * *", "1-59/2 * * * *", "*/3 * * * *", "0-59 * * * *")
AWAY_SECONDS = (3.0, 25.0)
"""How long Redis is away at a time: within the grace, and beyond."""


@dataclass(frozen=True)
class Plan:
    """How long a run lasts, and how often each disturbance happens."""

    seconds: int
    kills: int
    postgres_kills: int
    away_share: float = 0.3


class Scheduled(World):
    """Beats, system workers and job workers, two of each kind at least, with recurring jobs."""

    def __init__(self, installation: Installation, *, beats: int) -> None:
        super().__init__(
            installation,
            workers=("worker-0", "worker-1"),
            slots=2,
            systems=("system-0", "system-1"),
            beats=tuple(f"beat-{number}" for number in range(beats)),
            environ=ENVIRON,
        )
        self.recurring = Recurring(
            installation.servers.postgres.url, installation.folder, installation.tasks.path
        )
        self.done: Counter[str] = Counter()

    def play(self, plan: Plan, chance: Random) -> None:
        """Disturb the installation for `seconds`; afterwards all servers are up."""
        began_at = time.monotonic()
        for at, act in sorted(self._acts(plan, chance), key=lambda one: one[0]):
            time.sleep(max(0.0, began_at + at - time.monotonic()))  # the time is the fault's
            act()
            self.look()

    def _acts(self, plan: Plan, chance: Random) -> list[tuple[float, Callable[[], None]]]:
        """Return the disturbances, each with its second."""
        servers = self.installation.servers
        ways = [
            ("Redis killed", servers.redis.kill, servers.redis.start),
            ("Redis frozen", servers.redis.freeze, servers.redis.thaw),
        ]
        acts: list[tuple[float, Callable[[], None]]] = []
        for _ in range(plan.kills):
            name = chance.choice(sorted(self._programs))
            kind, kill = name.partition("-")[0], partial(self.replace, name)
            acts.append(
                (chance.uniform(0, plan.seconds), partial(self._do, f"{kind} killed", kill))
            )
        kill_postgres = partial(self._do, "PostgreSQL killed", servers.postgres.restart)
        acts += [
            (chance.uniform(0, plan.seconds), kill_postgres) for _ in range(plan.postgres_kills)
        ]
        for start, end in _absences(plan, chance):
            name, break_it, mend_it = chance.choice(ways)
            acts += [(start, partial(self._do, name, break_it)), (end, mend_it)]
        return acts

    def _do(self, name: str, act: Callable[[], None]) -> None:
        """Disturb the installation, and count that."""
        act()
        self.done[name] += 1


@contextmanager
def scheduled(folder: Path, *, beats: int) -> Iterator[Scheduled]:
    """Such an installation at work, whose pulse beats; afterwards nothing of it is left."""
    with installed(folder, runs=False) as installation:
        scene = Scheduled(installation, beats=beats)
        try:
            scene.begin(seconds=120)
            scene.recurring.beating()
            yield scene
        finally:
            scene.end()


def _absences(plan: Plan, chance: Random) -> list[tuple[float, float]]:
    """Return the spans in which Redis is away, which are that share of the time together."""
    away: list[float] = []
    while (left := plan.away_share * plan.seconds - sum(away)) > 0.5:
        away.append(min(left, chance.uniform(*AWAY_SECONDS)))
    here = plan.seconds - sum(away)
    cuts = [0.0, *sorted(chance.uniform(0, here) for _ in away), here]
    spans, now = [], 0.0
    for (first, last), length in zip(pairwise(cuts), away, strict=False):
        now += last - first
        spans.append((now, now + length))
        now += length
    return spans


def steady_jobs(number: int, *, ends_at: datetime, chance: Random) -> list[dict[str, Any]]:
    """Return jobs of which every due time is to run: intervals, crons in many zones, and once."""
    policy = {"misfire": "all", "misfire_cap": 100_000}
    return _mixed("steady", number, ends_at=ends_at, chance=chance, policies=[policy])


def lenient_jobs(number: int, *, ends_at: datetime, chance: Random) -> list[dict[str, Any]]:
    """Return jobs of which due times in an outage may be recorded as missed."""
    policies: list[dict[str, Any]] = [
        {"misfire": "once"},
        {"misfire": "skip"},
        {"misfire": "all", "misfire_cap": 1},
    ]
    return _mixed("lenient", number, ends_at=ends_at, chance=chance, policies=policies)


def _mixed(
    name: str, number: int, *, ends_at: datetime, chance: Random, policies: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    jobs = []
    for n in range(number):
        policy = policies[n % len(policies)]
        match n % 10:
            case 0 | 1 | 2 | 3:
                schedule: dict[str, Any] = {"interval_minutes": chance.choice([1, 1, 2, 3])}
            case 4 | 5 | 6 | 7:
                schedule = {"cron": chance.choice(CRONS), "zone": chance.choice(ZONES)}
            case 8:
                schedule = {"cron": chance.choice(CRONS), "smooth": True}
            case _:
                at = ends_at - timedelta(minutes=chance.uniform(1, 8))
                jobs.append(job_of(f"{name}-{n}", once_at=at.isoformat(), **policy))
                continue
        schedule["end_at"] = ends_at.isoformat()
        jobs.append(job_of(f"{name}-{n}", **schedule, **policy))
    return jobs
