"""Several machines of which most are lost together (G24): the short form of `test_machines`."""

import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests.machines.faults import CUT_SECONDS, Hand
from tests.machines.installation import FAR, installed
from tests.machines.needs import lacking
from tests.machines.play import judge

RUNS = 400

pytestmark = pytest.mark.proof


@pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is missing")
def test_faults_at_once(tmp_path: Path) -> None:
    """One worker is left, which loses packets; both servers fail over meanwhile."""
    with installed(tmp_path) as at:

        def faults(hand: Hand) -> None:
            with ExitStack() as stack:
                stack.enter_context(hand.from_both(FAR))
                stack.enter_context(hand.vanishes("worker3"))
                stack.enter_context(hand.loses_packets("worker1"))
                stack.enter_context(hand.redis_fails_over())
                stack.enter_context(hand.postgres_fails_over())
                began = min(record.began for record in hand.records)
                hand.last(began + CUT_SECONDS - time.monotonic())

        judge(at, faults, runs=RUNS, seconds=CUT_SECONDS, chance=Random(1))
