"""PostgreSQL is killed, stopped or frozen under load: the workers stay, and work goes on after."""

import time
from collections.abc import Iterator

import pytest

from tests.flows.installation import ENDED, Installation, installed
from tests.waiting import wait_for

# Two leases and a bit.
FAULT_SECONDS = 4.5
DROP = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One installation for all scenes."""
    with installed(tmp_path_factory.mktemp("postgres")) as installation:
        yield installation


@pytest.fixture
def installation(running: Installation) -> Installation:
    """The installation, at work and without runs."""
    running.begin()
    return running


@pytest.mark.parametrize("how", ["killed", "stopped", "frozen", "dropped"])
def test_work_goes_on_after_postgres(installation: Installation, how: str) -> None:
    """Outcomes are kept and recorded or fenced, nothing committed is lost, no worker ends."""
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
            postgres.kill()
            postgres.start()
        case "stopped":
            postgres.stop()
            _last(FAULT_SECONDS)
            postgres.start()
        case "frozen":
            postgres.freeze()
            _last(FAULT_SECONDS)
            postgres.thaw()
        case "dropped":
            for _ in range(5):
                installation.servers.sql(DROP)


def _last(seconds: float) -> None:
    """Let a fault last: the one wait here that is for a time, because the time is the fault."""
    time.sleep(seconds)
