"""A play of several machines: runs are submitted while faults happen, and all of it is judged."""

import time
from collections.abc import Callable
from random import Random
from typing import Final

from tests.chaos.figures import amount
from tests.machines.faults import LEASE, SWEEP, Hand, Record
from tests.machines.installation import Installation
from tests.machines.work import Work
from tests.waiting import wait_for

SLACK: Final = amount("SLACK", 0)
"""Seconds, of a machine that has other work."""
RESCUED_SECONDS: Final = 6.0
"""From the end of a lease and a sweep until a run is found and begins, with slots that are busy."""
AT_WORK: Final = 20
"""So many runs have started before the first fault."""
CALL_SECONDS: Final = 180.0
DRAIN_SECONDS: Final = 240.0
"""The longest time until the last run is submitted, and until it has ended: of few runs."""
BACKLOG_PER_SECOND: Final = 25
"""How many runs are submitted and end in a second at least, of a backlog that the faults leave."""


def judge(
    at: Installation,
    faults: Callable[[Hand], None],
    *,
    runs: int,
    seconds: float,
    chance: Random,
) -> None:
    """Submit runs, spread over these seconds, during faults; judge all, and print the figures.

    Each run ends, none starts twice beyond lost leases or outside its window, and each due time has
    its run. A worker that cannot renew its lease starts nothing after the lease's end, and what it
    had is found within a sweep.
    """
    began, hand = time.monotonic(), Hand(at)
    backlog = runs / BACKLOG_PER_SECOND
    late = CALL_SECONDS + DRAIN_SECONDS + 2 * backlog
    work = Work(at, seconds=seconds, late=late)
    try:
        work.begin(runs, seconds=seconds, chance=chance)
        wait_for(lambda: len(work.starts()) >= AT_WORK, seconds=60, what="the workers to work")
        faults(hand)
        called = work.submitted(seconds=CALL_SECONDS + backlog)
        at.drain(seconds=DRAIN_SECONDS + backlog)
        work.recurring.url = at.primary.url
        work.recurring.settled(work.ends_at, seconds=DRAIN_SECONDS)
        print(f"\n{runs} runs in {time.monotonic() - began:.0f} s, {called}")
        hand.measure(work.starts())
    finally:
        work.close()
        for record in hand.records:
            print(record.line())
        (at.folder / "ends.log").write_text(at.log_ends())
    work.verdicts()
    for record in hand.records:
        if record.lease_ends is not None:
            _judge_lease(record, servers_back=hand.servers_back(record))


def _judge_lease(record: Record, *, servers_back: float) -> None:
    figures = record.figures
    lease = figures["its lease ended after"]
    assert lease <= LEASE + 10, record.line()
    assert figures["its last start after"] < lease, record.line()
    due = max(lease, servers_back) + SWEEP + RESCUED_SECONDS + SLACK
    assert figures["found after"] < due, record.line()
