"""Recurring jobs on real processes: each due time has a run, or a record that it was missed."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from django.db import connection

from jobs import upsert_jobs
from jobs.management.stack.programs import beat, system_worker
from jobs.models import Cursor, Job, Owner
from jobs.schedules import slot_of
from tests.flows.beats import HOLDER, led_by
from tests.flows.processes import Process, Processes, database_url
from tests.flows.recurring import ZONES, Recurring, job_of, wait_until
from tests.waiting import wait_for

JOBS = 240
SECONDS = 14
HOUR = timedelta(hours=1)
CAP = 7
DEADLINE_SECONDS = 600
POLICIES: dict[str, dict[str, Any]] = {
    "skip": {"misfire": "skip"},
    "once": {"misfire": "once"},
    "all": {"misfire": "all", "misfire_cap": CAP},
    "deadline": {"misfire": "all", "misfire_deadline_seconds": DEADLINE_SECONDS},
}


@pytest.fixture
def world(processes: Processes, owner: Owner) -> Recurring:
    return Recurring(database_url(), processes.folder, processes.tasks.path)


def test_each_due_time_has_one_run_whoever_dies(
    world: Recurring, processes: Processes, broker: redis.Redis
) -> None:
    """Two of three beats are killed as they lead, and a system worker; Redis is emptied (G11)."""
    beats = [processes.start(beat(f"beat-{number}")) for number in range(3)]
    systems = [processes.start(system_worker(f"system-{number}")) for number in range(2)]
    processes.start_worker(slots=2)
    processes.ready()
    world.beating()
    before = world.moment()
    ends_at = before + timedelta(seconds=SECONDS)
    jobs = _busy(ends_at)
    upsert_jobs("acme", jobs)
    world.made(jobs, before=before, ends_at=ends_at)
    for seconds, act in (
        (1, lambda: _leader_of(beats).kill()),
        (6, systems[0].kill),
        (7, broker.flushall),
        (8, lambda: _leader_of(beats).kill()),
    ):
        wait_until(before + timedelta(seconds=seconds))
        act()
    world.settled(ends_at, seconds=40)
    assert world.verdict().figures["runs"] > JOBS * SECONDS / 60 / 2


@pytest.mark.proof
def test_what_nobody_was_there_for_follows_the_policy(
    world: Recurring, processes: Processes
) -> None:
    """An hour without beat and system worker: late runs, records, nothing at a wrong time (G12).

    The cursor is put back by an hour while they are dead; all else is real.
    """
    processes.start_worker(slots=2)
    dying = [processes.start_beat(), processes.start_system()]
    processes.ready()
    world.beating()
    for process in dying:
        process.kill()
    now = world.moment()
    before, ends_at = now - HOUR, now + timedelta(seconds=1)
    jobs = list(_policied(ends_at))
    upsert_jobs("acme", jobs)
    world.made(jobs, before=before, after=before, ends_at=ends_at)
    Job.objects.update(effective_from=before)
    Cursor.objects.update(slot=slot_of(before))
    processes.start_beat()
    processes.start_system()
    world.settled(ends_at, seconds=30)
    world.verdict()
    world.follows_policies()


def _busy(ends_at: datetime) -> list[dict[str, Any]]:
    """Return jobs of each minute, spread over it, and some by cron, in several zones."""
    spread = [job_of(f"spread-{n}", interval_minutes=1, end_at=ends_at) for n in range(JOBS)]
    crons = [
        job_of(f"cron-{n}", cron="* * * * *", zone=zone, end_at=ends_at)
        for n, zone in enumerate(ZONES)
    ]
    return [*spread, *crons]


def _policied(ends_at: datetime) -> Iterator[dict[str, Any]]:
    """Return an interval job and a cron job of each policy."""
    for name, policy in POLICIES.items():
        yield job_of(f"{name}-interval", interval_minutes=3, end_at=ends_at, **policy)
        yield job_of(f"{name}-cron", cron="*/5 * * * *", zone=ZONES[3], end_at=ends_at, **policy)


def _leader_of(beats: list[Process]) -> Process:
    """Wait for the beat that leads."""

    def leading() -> Process | None:
        with connection.cursor() as cursor:
            cursor.execute(HOLDER)
            return led_by(cursor.fetchall(), beats)

    return wait_for(leading, what="a beat that leads")
