"""A worker with busy slots loses its broker and finds it again, more than once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from socket import gethostname
from typing import Any

import pytest
from celery import Celery

from config.embedded.accounts import server_account
from config.embedded.places import Places
from config.embedded.redis import Redis
from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run
from tests.flows.processes import QUICK, Process, Processes
from tests.flows.servers import Breakable
from tests.flows.world import bodies, ended, most_at_once, outcomes, publishing_to, reached, states
from tests.state_dirs import new_state_dir, remove_state_dir
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

WORKER = f"one@{gethostname()}"
START_WITHIN = QUICK["LEASE_SECONDS"]
# The worker's loop looks once a second; the machine may be busy.
SLACK = 15.0


@dataclass(frozen=True)
class OwnBroker:
    """A Redis of the scene's own, and a client of the worker that listens to it."""

    redis: Breakable
    app: Celery

    def lose(self) -> None:
        """Replace it by an empty one; return when the worker has found that."""
        self.redis.restart()
        self.found()

    def found(self) -> None:
        """Return when the worker answers over this broker."""
        wait_for(self._answers, what="the worker to connect again")

    def _answers(self) -> bool:
        # A connection of its own: one that was kept is as lost as the worker's.
        with self.app.connection_for_write() as connection:
            return bool(self.app.control.ping([WORKER], timeout=0.4, connection=connection))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnBroker]:
    """The broker of the scene, to which this process publishes as well."""
    with _redis() as redis, publishing_to(redis.url, monkeypatch) as app:
        yield OwnBroker(redis, app)


@contextmanager
def _redis() -> Iterator[Breakable]:
    state_dir, account = new_state_dir(), server_account()
    try:
        places = Places(state_dir)
        places.make_sockets(account)
        redis = Breakable(Redis(places, account=account))
        try:
            yield redis
        finally:
            redis.close()
            places.remove_sockets()
    finally:
        remove_state_dir(state_dir)


@pytest.fixture
def worker(processes: Processes, owner: Owner, broker: OwnBroker) -> Process:
    """A worker with one slot, and the system's processes, on that broker."""
    url = broker.redis.url
    # By default, slow tasks are not leased beyond the slots.
    options = ("--prefetch-multiplier", "3")
    started = processes.start_worker("one", slots=1, options=options, REDIS_URL=url)
    processes.start_system_and_beat(REDIS_URL=url)
    processes.ready()
    return started


def test_what_waits_for_a_slot_outlives_two_losses(
    processes: Processes, worker: Process, broker: OwnBroker, verdict: Any
) -> None:
    """It is given back at its start deadline, then starts once; the slot is not doubled.

    The run in the slot is longer than all leases. Afterwards the worker gets SIGTERM while
    another such run is under way: that one also ends on this worker.
    """
    long = reached(_sleep(10), State.RUNNING)
    broker.lose()
    waiting = [_sleep(0.1) for _ in range(2)]
    wait_for(lambda: _admitted(waiting), what="a run to wait for the slot")
    broker.lose()
    wait_for(lambda: _admitted(waiting), what="a run to wait for the slot again")
    runs = [ended(run, seconds=30) for run in (long, *waiting)]
    assert all(outcomes(run)[-1] == "succeeded" for run in runs)
    assert [len(bodies(processes.tasks, run)) for run in runs] == [2] * 3, "one start, one end"
    assert max(_waits(run) for run in runs) < START_WITHIN + SLACK
    assert most_at_once(processes.tasks, of={str(run.id) for run in runs}) == 1

    last = reached(_sleep(2.5 * QUICK["LEASE_SECONDS"]), State.RUNNING)
    worker.signal(signal.SIGTERM)
    last = ended(last)
    assert states(last)[-3:] == ["admitted", "running", "succeeded"]
    assert len(bodies(processes.tasks, last)) == 2
    verdict(*runs, last)


def test_a_worker_without_its_broker_records_ends_and_kills(
    worker: Process, broker: OwnBroker, verdict: Any
) -> None:
    """Outcomes, time limits and cancels do not wait for Redis, nor does a worker that stops."""
    # The loop that waits for a broker still hears its pool; then the next run starts.
    run = reached(_sleep(1), State.RUNNING)
    broker.redis.stop()
    run = ended(run, seconds=1 + QUICK["LEASE_SECONDS"])
    assert outcomes(run) == ["succeeded"]
    after = _sleep(0.1)
    broker.redis.start()
    broker.found()
    after = ended(after)

    # The soft limit tells the task while the broker is away, the hard one ends it after that.
    soft, hard = 2.0, 7.0
    limited = reached(_hang(soft=soft, hard=hard), State.RUNNING)
    broker.redis.stop()
    wait_for(lambda: "Soft time limit" in worker.log_end(lines=400), seconds=soft + SLACK)
    broker.redis.start()
    broker.found()
    broker.lose()
    limited = ended(limited, seconds=hard + 2)
    assert (limited.error_type, outcomes(limited)) == ("TimeLimitExceeded", ["time limit"])
    assert limited.ended_at is not None and limited.started_at is not None
    assert (limited.ended_at - limited.started_at).total_seconds() < hard + SLACK

    # A cancelled task that does not listen is killed after its grace, while the worker stops.
    deaf = reached(_hang(soft=50, hard=60), State.RUNNING)
    worker.signal(signal.SIGTERM)
    wait_for(lambda: "Warm shutdown" in worker.log_end())
    assert deaf.cancel()
    deaf = ended(deaf)
    assert deaf.state == State.CANCELLED
    verdict(run, after, limited, deaf)


def _sleep(seconds: float) -> Run:
    return submit("tests.sleep", seconds=seconds, owner="acme", max_attempts=1)


def _hang(*, soft: float, hard: float) -> Run:
    return submit(
        "tests.sleep",
        seconds=60,
        ignore_soft=True,
        owner="acme",
        max_attempts=1,
        soft_time_limit_seconds=soft,
        time_limit_seconds=hard,
    )


def _admitted(runs: list[Run]) -> bool:
    ids = [run.id for run in runs]
    return Run.objects.filter(id__in=ids, state=State.ADMITTED).exists()


def _waits(run: Run) -> float:
    """Return the longest time that a run was admitted and not started, in seconds."""
    return max(
        (after[1] - before[1]).total_seconds()
        for before, after in pairwise(run.moves)
        if before[0] == State.ADMITTED
    )
