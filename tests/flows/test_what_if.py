"""A replay is compared with real workers: today's settings, and then twice the slots."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from random import Random
from typing import Any

import pytest

from jobs import submit_many
from jobs.core.sql import now
from jobs.forecast.replay.changes import Changes
from jobs.forecast.replay.plan import Plan, make_plan
from jobs.models import Submission
from jobs.system.rollups.histogram import GROWTH
from tests.flows.processes import Process, Processes
from tests.flows.world import make_owner

pytestmark = pytest.mark.proof

SLOTS = 4
OWNERS: dict[str, dict[str, Any]] = {
    "acme": {"weight": 3},
    "globex": {"weight": 1},
    "initech": {"weight": 2, "max_running": 1},
    "northwind": {"weight": 1},
    "umbrella": {"weight": 5},
}
# Seconds after the start, owner and number of runs: 1,500 together.
BURSTS = (
    (0, "acme", 400),
    (0, "globex", 250),
    (0, "initech", 120),
    (2, "northwind", 200),
    (3, "umbrella", 180),
    (5, "globex", 100),
    (7, "acme", 150),
    (8, "umbrella", 100),
)
REPLAYED_WITHIN = 0.4
PREDICTED_WITHIN = 0.5


def test_a_replay_waits_as_long_as_the_recording(processes: Processes) -> None:
    """Each owner's p95 wait within 15 % of the recorded one; with twice the slots, within 25 %."""
    for slug, fields in OWNERS.items():
        make_owner(slug, **fields)
    processes.start_system()
    first = _recorded(processes, SLOTS)
    second = _recorded(processes, 2 * SLOTS)
    today = _plan(*first)
    doubled = _plan(*first, slots=2 * SLOTS)
    measured = _plan(*second)
    print("\nstart cost", today.start_cost_seconds, measured.start_cost_seconds)
    assert (today.slots, measured.slots) == (SLOTS, 2 * SLOTS)
    replayed = list(_compared("today", today.recorded, today.replayed))
    predicted = list(_compared("twice", measured.recorded, doubled.replayed))
    assert len(replayed) == len(predicted) == len(OWNERS)
    assert max(replayed) <= REPLAYED_WITHIN
    assert max(predicted) <= PREDICTED_WITHIN


def _recorded(processes: Processes, slots: int) -> tuple[datetime, datetime]:
    """Run the load on a worker of its own; return the span."""
    worker: Process = processes.start_worker(f"w{slots}", slots, FAIRSHIFT_LEASE_SECONDS="30")
    processes.ready()
    chance = Random(7)
    begun, made = now(), []
    at = time.monotonic()
    for seconds, owner, count in BURSTS:
        time.sleep(max(0.0, at + seconds - time.monotonic()))
        calls = [{"n": n, "seconds": chance.uniform(0.06, 0.3)} for n in range(count)]
        made.append(submit_many("tests.record", calls, owner=owner))
    _all_done(made)
    span = begun, now()
    worker.stop()
    return span


def _all_done(made: list[Submission]) -> None:
    for submission in made:
        submission.wait(timeout=300)


def _plan(start: datetime, end: datetime, slots: int | None = None) -> Plan:
    return make_plan(
        start=start,
        end=end,
        changes=Changes(slots=slots),
        growth=GROWTH,
        most_runs=10_000,
        queue="jobs",
    )


def _compared(title: str, real: Any, said: Any) -> Iterator[float]:
    """Print and yield by how much p95 waits differ, as a part of the real ones."""
    found: Mapping[str, Any] = {one.owner: one for one in said}
    for one in real:
        other = found[one.owner]
        assert one.started == other.started
        part = abs(other.p95 - one.p95) / one.p95
        print(
            f"{title} {one.owner:10} real p50 {one.p50:7.3f} p95 {one.p95:7.3f} "
            f"longest {one.longest:7.3f}, replayed {other.p50:7.3f} {other.p95:7.3f} "
            f"{other.longest:7.3f}: {part:.1%}"
        )
        yield part
