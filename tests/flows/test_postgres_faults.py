"""PostgreSQL is killed, stopped or frozen under load: workers stay, work continues after."""

import pytest

from tests.flows.installation import ENDED, Installation, last
from tests.waiting import wait_for

# Two leases and a bit.
FAULT_SECONDS = 4.5
DROP = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


OTHERS = [pytest.param(how, marks=pytest.mark.proof) for how in ("frozen", "stopped", "dropped")]


@pytest.mark.parametrize("how", ["killed", *OTHERS])
def test_work_goes_on_after_postgres(installation: Installation, how: str) -> None:
    """Outcomes are recorded or fenced, nothing committed is lost, no worker ends."""
    steady = installation.submitter("--count", "40", "--pause", "0.1", "--seconds", "0.2")
    wait_for(lambda: installation.count(ENDED) > 5, seconds=60)
    _break(installation, how)
    installation.caught_up()
    assert steady.wait() == 0
    installation.drained()
    figures = installation.verdict().figures
    assert figures["starts"] <= figures["runs"] + figures["lost leases"], figures
    # What was in flight: four slots, and the runs that were admitted and not started.
    assert figures["lost leases"] <= 8, figures


def _break(installation: Installation, how: str) -> None:
    """Break PostgreSQL, and repair it."""
    postgres = installation.servers.postgres
    match how:
        case "killed":
            postgres.restart()
        case "stopped":
            postgres.stop()
            last(FAULT_SECONDS)
            postgres.start()
        case "frozen":
            postgres.freeze()
            last(FAULT_SECONDS)
            postgres.thaw()
        case "dropped":
            for _ in range(5):
                installation.servers.sql(DROP)
