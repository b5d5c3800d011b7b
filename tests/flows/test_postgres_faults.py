"""PostgreSQL is killed, stopped or frozen under load: workers stay, work continues after."""

import pytest

from tests.flows.breaking import Break, away, dropped, hung, killed
from tests.flows.installation import ENDED, Installation, last
from tests.waiting import wait_for

# Two leases and a bit.
FAULT_SECONDS = 4.5
WAYS: dict[str, tuple[Break, float]] = {
    "killed": (killed("postgres"), 0.0),
    "frozen": (hung("postgres"), FAULT_SECONDS),
    "stopped": (away("postgres"), FAULT_SECONDS),
    "dropped": (dropped, 0.0),
}
"""How PostgreSQL fails, and for how many seconds."""
OTHERS = [pytest.param(how, marks=pytest.mark.proof) for how in WAYS if how != "killed"]


@pytest.mark.parametrize("how", ["killed", *OTHERS])
def test_work_goes_on_after_postgres(installation: Installation, how: str) -> None:
    """Outcomes are recorded or fenced, nothing committed is lost, no worker ends."""
    steady = installation.submitter("--count", "40", "--pause", "0.1", "--seconds", "0.2")
    wait_for(lambda: installation.count(ENDED) > 5, seconds=60)
    breaking, seconds = WAYS[how]
    with breaking(installation):
        last(seconds)
    installation.caught_up()
    assert steady.wait() == 0
    installation.drained()
    figures = installation.verdict().figures
    assert figures["starts"] <= figures["runs"] + figures["lost leases"], figures
    # What was in flight: four slots, and the runs that were admitted and not started.
    assert figures["lost leases"] <= 8, figures
