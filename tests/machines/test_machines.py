"""Several machines in a network that breaks (G24): `make chaos WHAT=machines`, with RUNS and SEED.

RUNS are submitted over HTTP while every fault happens, one after the other by the seed, with the
shipped settings. Another play has five of them at the same time.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.machines.faults import CUT_SECONDS, SLOW_SECONDS, Block, Hand
from tests.machines.installation import FAR, WORKERS, installed
from tests.machines.needs import lacking
from tests.machines.play import judge

RUNS = amount("RUNS", 2_000)
FEW_RUNS = 400
BETWEEN_SECONDS = 5.0

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is missing"),
]


def test_faults_at_once(tmp_path: Path) -> None:
    """Two workers, Redis's master and PostgreSQL's primary are lost together.

    The worker that is left is behind proxies, which hide for 25 s that its servers are gone.
    """
    with installed(tmp_path) as at:

        def faults(hand: Hand) -> None:
            with ExitStack() as stack:
                stack.enter_context(hand.from_both("worker1"))
                stack.enter_context(hand.vanishes("worker3"))
                stack.enter_context(hand.is_slow())
                stack.enter_context(hand.redis_fails_over())
                stack.enter_context(hand.postgres_fails_over())
                began = min(record.began for record in hand.records)
                hand.last(began + CUT_SECONDS - time.monotonic())

        judge(at, faults, runs=FEW_RUNS, seconds=CUT_SECONDS, chance=Random(1))


def test_every_fault(tmp_path: Path) -> None:
    """The same with every fault, one after the other, each with a worker by the seed."""
    chance = dice(RUNS=RUNS)
    with installed(tmp_path) as at:

        def faults(hand: Hand) -> None:
            for block, seconds, victims in _faults(hand, chance):
                with block(chance.choice(victims)):
                    hand.last(seconds)
                hand.last(BETWEEN_SECONDS)

        seconds = sum(seconds + BETWEEN_SECONDS for _, seconds, _ in _faults(Hand(at), Random(1)))
        judge(at, faults, runs=RUNS, seconds=seconds, chance=chance)


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
