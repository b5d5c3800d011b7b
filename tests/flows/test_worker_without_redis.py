"""Redis stops answering one connection of a worker: it is named, and works again."""

import hashlib
from pathlib import Path

import pytest

from fleet.transport import scripts
from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run, Worker
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import read
from jobs.system.verdict.rules import problems_of
from tests.flows.processes import Processes
from tests.flows.world import ended, outcomes
from tests.proxy import NONE, Faults, Proxy
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

# The script's name in Redis is the hash of its text.
TAKES = hashlib.sha1(scripts.source("take").encode()).hexdigest().encode()
SWALLOWED = Faults(lost=1.0, hangs=True, command=TAKES)
MINUTE = 60.0
SLACK = 60.0  # seconds, of a machine that has other work


def verdict() -> dict[str, str]:
    """Return the problems of the overview: the text of each, by its code."""
    return {one.code: one.text for one in problems_of(read(Operator()).facts)}


def test_a_worker_whose_takes_redis_does_not_answer_is_named(
    processes: Processes, owner: Owner, proxy: Proxy, tmp_path: Path
) -> None:
    """Its other connections are answered, and nothing is closed.

    Three runs wait; when Redis answers again, they run. `test_faults` has a worker of which all
    connections are swallowed.
    """
    alive = tmp_path / "alive"
    url = proxy.url
    processes.start_system_and_beat()
    worker = processes.start_worker("cut", 1, REDIS_URL=url, FAIRSHIFT_ALIVE_FILE=str(alive))
    processes.ready()
    assert outcomes(ended(submit("tests.add", x=1, y=2, owner=owner))) == ["succeeded"]
    assert alive.exists() and not Worker.objects.without_redis().exists()
    proxy.faults = SWALLOWED
    runs = [submit("tests.add", x=n, y=n, owner=owner) for n in range(3)]
    named = wait_for(
        lambda: verdict().get("without_redis"), seconds=MINUTE + SLACK, what="the verdict"
    )
    row = Worker.objects.without_redis().get()
    assert row.hostname.startswith("cut@") and f"({row.hostname})" in named
    for run in runs:
        found = Run.objects.get(id=run.id)
        assert found.state == State.QUEUED
        assert found.why_waiting() == (
            f"No worker takes from queue 'jobs': worker {row.hostname} cannot use Redis."
        )
    alive.unlink(missing_ok=True)
    beat_at = row.heartbeat_at
    wait_for(
        lambda: (Worker.objects.get(pk=row.pk).heartbeat_at - beat_at).total_seconds() > 2,
        what="more heartbeats",
    )
    assert not alive.exists(), "the health check must not pass"
    proxy.faults = NONE
    for run in runs:
        assert ended(run, seconds=MINUTE + SLACK).state == State.SUCCEEDED
    wait_for(lambda: not verdict(), seconds=MINUTE, what="a healthy installation")
    wait_for(alive.exists, what="the file for health checks")
    assert worker.is_alive
