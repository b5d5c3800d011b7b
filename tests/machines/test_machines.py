"""Several machines in a network that breaks (G24): `make chaos WHAT=machines`, with RUNS and SEED.

RUNS are submitted over HTTP while every fault happens, one after the other by the seed, with the
shipped settings. With many RUNS the faults are repeated. `test_at_once` has five at the same time.
"""

from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.machines.faults import CUT_SECONDS, SLOW_SECONDS, Fault, Hand
from tests.machines.installation import FAR, WORKERS, installed
from tests.machines.needs import lacking
from tests.machines.play import judge

RUNS = amount("RUNS", 2_000)
BETWEEN_SECONDS = 5.0
RUNS_PER_SECOND = 20
"""As many as two cores can execute while all machines of the play share them."""

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is missing"),
]


def test_every_fault(tmp_path: Path) -> None:
    """One after the other, each with a worker by the seed: all of it is judged."""
    chance = dice(RUNS=RUNS)
    with installed(tmp_path) as at:
        plan = _plan(chance)

        def faults(hand: Hand) -> None:
            for fault, seconds, victim in plan:
                with fault(hand, victim):
                    hand.last(seconds)
                hand.last(BETWEEN_SECONDS)

        seconds = sum(seconds + BETWEEN_SECONDS for _, seconds, _ in plan)
        judge(at, faults, runs=RUNS, seconds=seconds, chance=chance)


def _plan(chance: Random) -> list[tuple[Fault, float, str]]:
    """Return the faults in order, each with its seconds and its victim, until all runs are sent."""
    wanted = RUNS / RUNS_PER_SECOND
    plan: list[tuple[Fault, float, str]] = []
    while not plan or sum(seconds + BETWEEN_SECONDS for _, seconds, _ in plan) < wanted:
        faults = _each()
        if plan:
            # The play has one standby of PostgreSQL.
            faults = [one for one in faults if one[0] is not Hand.postgres_fails_over]
        chance.shuffle(faults)
        plan += [(fault, seconds, chance.choice(victims)) for fault, seconds, victims in faults]
    return plan


def _each() -> list[tuple[Fault, float, tuple[str, ...]]]:
    """Return every fault once, with its length and its victims."""
    # The proxies of the far worker would lose their network with its machine.
    vanishing = tuple(name for name in WORKERS if name != FAR)
    return [
        *((fault, CUT_SECONDS, WORKERS) for fault in (Hand.from_redis, Hand.from_postgres)),
        *((fault, CUT_SECONDS, WORKERS) for fault in (Hand.from_both, Hand.hears_nothing)),
        (Hand.says_nothing, CUT_SECONDS, WORKERS),
        (Hand.vanishes, CUT_SECONDS, vanishing),
        (Hand.loses_packets, SLOW_SECONDS, WORKERS),
        (Hand.is_slow, SLOW_SECONDS, (FAR,)),
        (Hand.beat_from_all, SLOW_SECONDS, ("",)),
        (Hand.redis_fails_over, SLOW_SECONDS, ("",)),
        (Hand.postgres_fails_over, SLOW_SECONDS, ("",)),
    ]
