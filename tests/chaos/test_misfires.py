"""Beats and system workers dead for minutes (G12): `make chaos WHAT=misfires`, with SECONDS."""

import time
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.scheduled import scheduled
from tests.flows.recurring import ZONES, job_of

SECONDS = amount("SECONDS", 250)
JOBS = amount("JOBS", 40)
CAP = 2
DEADLINE_SECONDS = 100
AFTER = timedelta(seconds=5)
POLICIES = (
    {"misfire": "skip"},
    {"misfire": "once"},
    {"misfire": "all", "misfire_cap": CAP},
    {"misfire": "all", "misfire_deadline_seconds": DEADLINE_SECONDS},
)


@pytest.mark.chaos
def test_misfires(tmp_path: Path) -> None:
    """After minutes without beat and system worker each policy has run its due times, no more.

    Due times that it leaves out are recorded, and nothing ran at another time.
    """
    chance = dice(SECONDS=SECONDS, JOBS=JOBS)
    with scheduled(tmp_path, beats=2) as scene:
        before = scene.recurring.moment()
        ends_at = before + timedelta(seconds=SECONDS) + AFTER
        jobs = _jobs(ends_at=ends_at, chance=chance)
        scene.caller.ask("upsert", jobs=jobs)
        scene.recurring.made(jobs, before=before, ends_at=ends_at)
        gone = [name for name in scene.processes if not name.startswith("worker")]
        for name in gone:
            scene.processes.pop(name).kill()
        time.sleep(SECONDS)  # the outage
        for name in gone:
            scene.start(name)
        scene.recurring.settled(ends_at, seconds=60)
        scene.recurring.verdict()
        scene.recurring.follows_policies()


def _jobs(*, ends_at: datetime, chance: Random) -> list[dict[str, Any]]:
    """Return jobs of each minute, by interval and by cron, with each of the policies."""
    schedules: list[dict[str, Any]] = [
        {"cron": "* * * * *", "zone": chance.choice(ZONES)}
        if number % 2
        else {"interval_minutes": 1}
        for number in range(JOBS)
    ]
    return [
        job_of(
            f"job-{number}",
            end_at=ends_at.isoformat(),
            **schedule,
            **POLICIES[number // 2 % len(POLICIES)],
        )
        for number, schedule in enumerate(schedules)
    ]
