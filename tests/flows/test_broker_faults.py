"""Redis is refused, hung, read-only, full or replaced: submits commit, work continues after."""

import pytest

from tests.flows.breaking import REDIS
from tests.flows.installation import ENDED, Installation, last
from tests.waiting import wait_for

FAULT_SECONDS = 4.0
# The lease is two seconds here, so a run of this length outlives it within the fault.
LONG_SECONDS = 5.0
LONG_BEGUN = """
SELECT count(*) FROM jobs_run WHERE labels ->> 'judge_key' = 'long-1' AND started_at IS NOT NULL
"""


OTHERS = [pytest.param(how, marks=pytest.mark.proof) for how in ("read-only", "full", "replaced")]


@pytest.mark.parametrize("how", ["refused", *OTHERS])
def test_submits_and_runs_go_on_without_redis(installation: Installation, how: str) -> None:
    """No submit waits, running work keeps its lease, and the rest starts soon after the end."""
    long = installation.submitter("--count", "1", "--seconds", str(LONG_SECONDS), prefix="long")
    steady = installation.submitter("--count", "50", "--pause", "0.1")
    wait_for(lambda: installation.count(LONG_BEGUN) and installation.count(ENDED) > 5, seconds=60)
    with REDIS[how](installation):
        last(FAULT_SECONDS)
    installation.caught_up()
    waits = [*steady.waits(), *long.waits()]
    installation.drained()
    figures = installation.verdict().figures
    assert figures["starts"] == figures["runs"], figures
    assert max(waits) < FAULT_SECONDS / 2


def test_a_hung_redis_holds_up_one_submit_for_its_deadline(installation: Installation) -> None:
    """A block that is open commits and answers in time; those behind it hardly wait at all."""
    held = installation.submitter("--count", "3", "--hold-at", "2", prefix="held")
    steady = installation.submitter("--count", "50", "--pause", "0.1")
    held.until("open")
    wait_for(lambda: installation.count(ENDED) > 5, seconds=60)
    with REDIS["hung"](installation):
        committing = held.go_on(key="held-2")
        last(FAULT_SECONDS)
    installation.caught_up()
    waits = [*steady.waits(), committing]
    held.waits()
    installation.drained()
    installation.verdict()
    assert max(waits) < 2.0
    # One steady submit waits at the beginning of each pause of the broker, none in it.
    assert sum(wait > 0.5 for wait in waits) <= 1 + 1 + FAULT_SECONDS // 2, waits
