"""Several machines in a network that breaks (G24): `make chaos WHAT=machines`, with RUNS and SEED.

RUNS are submitted over HTTP while every fault happens, one after the other by the seed, with the
shipped settings. The short form has five of them at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.machines.faults import CUT_SECONDS, LEASE, SLOW_SECONDS, SWEEP, Block, Hand
from tests.machines.installation import FAR, WORKERS, Installation, Work, installed
from tests.machines.network import may_make_machines
from tests.waiting import wait_for

RUNS = amount("RUNS", 2_000)
SLACK = amount("SLACK", 0)
"""Seconds, of a machine that has other work."""
SHORT_RUNS = 400
RESCUED_SECONDS = 6.0
"""From the end of a lease and a sweep until a run is found and begins, with slots that are busy."""
BETWEEN_SECONDS = 5.0
AT_WORK = 20
"""So many runs have started before the first fault."""

machines = pytest.mark.skipif(not may_make_machines(), reason="needs root, unshare, ip and nft")


@machines
@pytest.mark.chaos
def test_faults_at_once(tmp_path: Path) -> None:
    """Two workers, Redis's master and PostgreSQL's primary are lost together.

    Each run ends, none starts twice beyond lost leases or outside its window, and each due time has
    its run. A worker that cannot renew its lease starts nothing after the lease's end.
    """
    with installed(tmp_path) as at:

        def play(hand: Hand) -> None:
            with ExitStack() as faults:
                faults.enter_context(hand.from_both("worker1"))
                faults.enter_context(hand.vanishes("worker3"))
                faults.enter_context(hand.is_slow())
                faults.enter_context(hand.redis_fails_over())
                faults.enter_context(hand.postgres_fails_over())
                began = min(record.began for record in hand.records)
                hand.last(began + CUT_SECONDS - time.monotonic())

        _judge(at, play, runs=SHORT_RUNS, seconds=CUT_SECONDS, chance=Random(1))


@machines
@pytest.mark.chaos
def test_every_fault(tmp_path: Path) -> None:
    """The same with every fault, one after the other, each with a worker by the seed."""
    chance = dice(RUNS=RUNS)
    with installed(tmp_path) as at:

        def play(hand: Hand) -> None:
            for block, seconds, victims in _faults(hand, chance):
                with block(chance.choice(victims)):
                    hand.last(seconds)
                hand.last(BETWEEN_SECONDS)

        seconds = sum(seconds + BETWEEN_SECONDS for _, seconds, _ in _faults(Hand(at), Random(1)))
        _judge(at, play, runs=RUNS, seconds=seconds, chance=chance)


def _faults(hand: Hand, chance: Random) -> list[tuple[Block, float, tuple[str, ...]]]:
    """Return every fault with its length and its victims, in an order by chance."""
    # The proxies of the far worker would lose their network with its machine.
    vanishing = tuple(name for name in WORKERS if name != FAR)
    faults: list[tuple[Block, float, tuple[str, ...]]] = [
        *((block, CUT_SECONDS, WORKERS) for block in (hand.from_redis, hand.from_postgres)),
        *((block, CUT_SECONDS, WORKERS) for block in (hand.from_both, hand.hears_nothing)),
        (hand.says_nothing, CUT_SECONDS, WORKERS),
        (hand.vanishes, CUT_SECONDS, vanishing),
        (hand.loses_packets, SLOW_SECONDS, WORKERS),
        (hand.is_slow, SLOW_SECONDS, (FAR,)),
        (hand.beat_from_all, SLOW_SECONDS, ("",)),
        (hand.redis_fails_over, SLOW_SECONDS, ("",)),
        (hand.postgres_fails_over, SLOW_SECONDS, ("",)),
    ]
    chance.shuffle(faults)
    return faults


def _judge(
    at: Installation, play: Callable[[Hand], None], *, runs: int, seconds: float, chance: Random
) -> None:
    """Submit runs while faults are played; judge what came of it, and print the figures."""
    began, hand = time.monotonic(), Hand(at)
    work = Work(at, seconds=seconds)
    try:
        work.begin(runs, seconds=seconds, chance=chance)
        wait_for(lambda: len(work.starts()) >= AT_WORK, seconds=60, what="the workers to work")
        play(hand)
        called = work.submitted(seconds=180)
        at.drain(seconds=240)
        work.recurring.url = at.primary.url
        work.recurring.settled(work.ends_at, seconds=240)
        print(f"\n{runs} runs in {time.monotonic() - began:.0f} s, {called}")
        hand.measure(work.starts())
    finally:
        work.close()
        for record in hand.records:
            print(record.line())
        (at.folder / "ends.log").write_text(at.log_ends())
    work.verdicts()
    for record in hand.records:
        if record.lease_ends is None:
            continue
        figures = record.figures
        lease = figures["its lease ended after"]
        assert lease <= LEASE + 10, record.line()
        assert figures["its last start after"] < lease, record.line()
        due = max(lease, hand.servers_back(record)) + SWEEP + RESCUED_SECONDS + SLACK
        assert figures["found after"] < due, record.line()
