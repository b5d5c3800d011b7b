"""Many beats, killed, frozen and stopped at random, while their servers go away: no send doubled.

Messages are taken from a stock queue, which removes no duplicates.
"""

import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.chaos.figures import amount, dice
from tests.flows.beats import Beats, beats
from tests.waiting import wait_for

pytestmark = pytest.mark.chaos

BEATS = 4
ACTS = amount("ACTS", 40)
HEALED_SECONDS = 15.0


def test_beats_come_and_go(tmp_path: Path) -> None:
    """After each disturbance sends go on within ten seconds and a server's start.

    Each id is that of a due time. One comes twice only after a beat or Redis has died
    between a publish and its note: in few of the acts.
    """
    random = dice(ACTS=ACTS)
    with beats(tmp_path) as world:
        while len(world.running) < BEATS:
            world.start()
        world.hear("second")
        acts: list[Callable[[], None]] = [
            lambda: _kill(world),
            lambda: _kill(world),
            lambda: _freeze(world, random),
            lambda: _stop(world, random),
            world.servers.redis.restart,
            world.servers.postgres.restart,
        ]
        for number in range(ACTS):
            acts[number % len(acts)]()
            world.hear("second", seconds=HEALED_SECONDS)
            for process in world.running:
                assert process.is_alive, process.log_end()
        heard = world.ear.of("second")
        gap = max(later.at - earlier.at for earlier, later in pairwise(heard))
        counts, doubled = world.ear.counts("second"), world.doubled("second")
        print(f"{len(counts)} due times, longest gap {gap:.1f} s, doubled {doubled}")
        assert set(counts) <= world.nominal_ids()
        assert gap < HEALED_SECONDS
        assert len(doubled) <= ACTS // 10


def _kill(world: Beats) -> None:
    leader = world.leader()
    leader.kill()
    world.running.remove(leader)
    world.start()


def _stop(world: Beats, random: Random) -> None:
    leaving = random.choice(world.running)
    leaving.stop()
    world.running.remove(leaving)
    world.start()


def _freeze(world: Beats, random: Random) -> None:
    """Freeze the leader at a random moment, until another one leads."""
    leader = world.leader()
    time.sleep(random.random())
    leader.signal(signal.SIGSTOP)
    wait_for(lambda: world.leader() is not leader, what="another one to lead")
    leader.signal(signal.SIGCONT)
