"""A far Redis: its latency costs a worker a round trip a window, not one a run."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from celery import group

from jobs import submit_many
from jobs.core.states import State
from jobs.models import Run
from tests.flows.processes import Processes
from tests.flows.world import event_count
from tests.proxy import Faults, Proxy
from tests.tasks import record
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

LATE = Faults(delay_seconds=0.3)
SLOTS = 4
RUNS = 200
SECONDS = 0.05


def test_a_late_redis_costs_a_round_trip_a_window(processes: Processes, proxy: Proxy) -> None:
    """Of 200 short jobs on 4 slots, with each reply 300 ms late: takes and ends overlap with work.

    One take brings what the slots need until the next; with one reply for each run they would
    take 15 s and more, without any latency 2.5 s.
    """
    calls = [{"n": n, "seconds": SECONDS} for n in range(RUNS)]
    # From its boot on: the worker goes by the shortest of its last round trips.
    proxy.faults = LATE
    processes.start_worker("far", SLOTS, REDIS_URL=proxy.url, FAIRSHIFT_LEASE_SECONDS="20")
    processes.ready()
    # The queue learns how long they take.
    done = 8
    group(record.s(0, SECONDS) for _ in range(done)).delay()
    _await_ends(processes, done)
    ways: dict[str, Callable[[], object]] = {
        "durable": lambda: submit_many("tests.record", calls, owner="acme"),
        "plain": lambda: group(record.s(**call) for call in calls).delay(),
    }
    for way, publish in ways.items():
        before, began_at = sum(proxy.counts.values()), time.monotonic()
        publish()
        done += RUNS
        _await_ends(processes, done)
        took, replies = time.monotonic() - began_at, sum(proxy.counts.values()) - before
        print(f"{way}: {RUNS} runs in {took:.1f} s ({RUNS / took:.0f}/s), {replies} replies")
        assert took < 10
    wait_for(lambda: not Run.objects.exclude(state=State.SUCCEEDED).exists())


def _await_ends(processes: Processes, count: int) -> None:
    wait_for(lambda: event_count(processes.tasks, "end") == count, seconds=60)
