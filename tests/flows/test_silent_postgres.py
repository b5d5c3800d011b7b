"""PostgreSQL is gone for one worker, and a proxy hides that: its connections stay open."""

import signal
import time
from collections.abc import Iterator

import pytest
from django.db import connection

from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.runs.changing import change_run
from tests.flows.processes import Process, Processes
from tests.flows.world import ended, reached
from tests.jobs.scenes import hinted, known
from tests.proxy import NONE, Faults, Proxy
from tests.waiting import wait_for

GONE = Faults(hides_loss=True)
SLOTS = 2
CONNECT_SECONDS = 120
AUTHENTICATION_SECONDS = 60
"""PostgreSQL's default of `authentication_timeout`."""


@pytest.fixture
def way() -> Iterator[Proxy]:
    """The far worker's way to PostgreSQL."""
    given = connection.settings_dict
    socket = f"{given['HOST']}/.s.PGSQL.{given['PORT'] or 5432}"
    with Proxy(f"unix://{socket}") as proxy:
        yield proxy


def start_far(processes: Processes, way: Proxy, **environ: str) -> Process:
    given = connection.settings_dict
    url = f"postgresql://{given['USER']}@127.0.0.1:{way.port}/{given['NAME']}"
    url += f"?connect_timeout={CONNECT_SECONDS}"
    far = processes.start_worker("far", SLOTS, DATABASE_URL=url, **environ)
    processes.ready()
    return far


def test_hints_of_a_worker_without_postgres_start_elsewhere(
    processes: Processes, way: Proxy, owner: Owner
) -> None:
    """It has taken them, its loop turns, and it renews their leases: no one else could take them.

    When PostgreSQL answers again, the worker takes again.
    """
    start_far(processes, way)
    assert ended(submit("tests.record", 0, owner=owner)).state == State.SUCCEEDED
    way.faults = GONE
    runs = [submit("tests.record", number, owner=owner) for number in range(SLOTS)]
    wait_for(lambda: hinted() == [], what="the far worker to take them")
    near = processes.start_worker("near", SLOTS)
    for run in runs:
        assert ended(run, seconds=30).state == State.SUCCEEDED
    near.stop()
    way.faults = NONE
    way.cut_all()
    assert ended(submit("tests.record", 9, owner=owner), seconds=30).state == State.SUCCEEDED
    assert not Run.objects.exclude(state=State.SUCCEEDED).exists()


def test_a_new_hint_of_a_run_starts_elsewhere(
    processes: Processes, way: Proxy, owner: Owner
) -> None:
    """A worker without PostgreSQL had taken its old hint before the run was changed."""
    start_far(processes, way)
    assert ended(submit("tests.record", 0, owner=owner)).state == State.SUCCEEDED
    way.faults = GONE
    run = submit("tests.record", 1, owner=owner)
    wait_for(lambda: known() != [] and hinted() == [], what="the far worker to take its hint")
    change_run(run, priority=9)
    processes.start_worker("near", SLOTS)
    assert ended(run, seconds=30).state == State.SUCCEEDED


@pytest.mark.proof
def test_a_worker_without_postgres_stops_in_time(
    processes: Processes, way: Proxy, owner: Owner
) -> None:
    """It waits 10 s for PostgreSQL in all, whatever the time-outs are; its run is rescued later."""
    far = start_far(processes, way, FAIRSHIFT_LEASE_SECONDS="30")
    run = reached(submit("tests.sleep", seconds=1, owner=owner), State.RUNNING)
    way.faults = GONE
    began_at = time.monotonic()
    far.signal(signal.SIGTERM)
    wait_for(lambda: not far.is_alive, what="the worker's end")
    # By then PostgreSQL itself drops a connection that has not logged in.
    assert time.monotonic() - began_at < AUTHENTICATION_SECONDS
    run.refresh_from_db()
    assert run.state == State.RUNNING
