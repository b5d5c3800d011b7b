"""Redis is emptied, or falls back to an older copy of itself, under workers that are at work.

Redis has then lost pauses, caps and leases, without any error.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import pytest
import redis
from django.db import transaction

from fleet.keys import queue_key
from jobs import submit_many
from jobs.core import sql
from jobs.core.states import State
from jobs.models import Run
from jobs.owners import fair_queue
from jobs.owners.limits import limit_owner, pause_owner, resume_owner
from tests.flows.processes import Processes
from tests.flows.test_lost_broker import OwnBroker, broker
from tests.flows.world import make_owner, most_at_once, start_count
from tests.judge import Verdict
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

__all__ = ["broker"]

CAP = 2
RUNS = 40
# One second for other workers' leases, one for a worker to connect again.
GOES_ON_SECONDS = 3.0
SLACK = 2.0
# Within the two seconds for which a queue waits to be primed.
UNTOLD_SECONDS = 0.7
PAUSED, CAPPED = "flows.told", "flows.hold"


@pytest.fixture
def client(broker: OwnBroker) -> Any:
    path = broker.redis.url.removeprefix("redis+socket://").partition("?")[0]
    with closing(redis.Redis(unix_socket_path=path, socket_timeout=5)) as client:
        yield client


@pytest.fixture
def workers(processes: Processes, broker: OwnBroker) -> Processes:
    """Two workers with two slots each, and the system's processes, on that broker."""
    url = broker.redis.url
    for name in ("one", "two"):
        processes.start_worker(name, slots=2, REDIS_URL=url)
    processes.start_system_and_beat(REDIS_URL=url)
    processes.ready()
    return processes


@pytest.mark.parametrize("how", ["emptied", "older"])
def test_what_redis_has_forgotten_is_told_before_it_goes_on(
    workers: Processes,
    broker: OwnBroker,
    client: redis.Redis,
    verdict: Callable[..., Verdict],
    how: str,
) -> None:
    """No call of a paused owner starts, a cap counts running work, and hints are back soon."""
    acme, globex, _ = (make_owner(name) for name in ("acme", "globex", "northwind"))
    call, word = partial(_call, broker), workers.folder / "word"
    call(PAUSED, "before", owner="globex")
    wait_for(lambda: start_count(workers.tasks, task=PAUSED) == 1)
    # What ends after the copy was made would run again.
    wait_for(lambda: not client.hlen(queue_key("jobs", "meta")), what="its end to be said")
    client.save()  # A copy without the cap and the pause.
    limit_owner(acme, max_running=CAP)
    pause_owner(globex)
    for _ in range(CAP + 2):
        call(CAPPED, str(word), owner="acme")
    wait_for(lambda: start_count(workers.tasks, task=CAPPED) == CAP)
    paused = submit_many("tests.record", [{"n": 0}], owner="globex")
    calls = [{"n": n, "seconds": 0.2} for n in range(RUNS)]
    submission = submit_many("tests.record", calls, owner="northwind")
    wait_for(lambda: _ended() > RUNS // 8)

    epoch = _epoch(client)
    # No process can prime the queue meanwhile.
    with transaction.atomic():
        sql.query(fair_queue.ALONE)
        if how == "emptied":
            client.flushall()
        else:
            broker.redis.restart()
        call(PAUSED, "after", owner="globex")
        for _ in range(CAP + 2):
            call(CAPPED, str(word), owner="acme")
        wait_for(lambda: _epoch(client) > epoch, what="a new epoch")
        wait_for(lambda: _age_of_epoch(client) > UNTOLD_SECONDS)
        assert start_count(workers.tasks, task=PAUSED) == 1
        assert most_at_once(workers.tasks, of={CAPPED}) == CAP
    before = _ended()
    wait_for(lambda: _ended() > before + 4, seconds=GOES_ON_SECONDS + SLACK, what="work to go on")
    wait_for(lambda: _ended() == RUNS, seconds=30)
    assert start_count(workers.tasks, task=PAUSED) == 1
    assert set(paused.runs.values_list("state", flat=True)) == {State.QUEUED}
    assert most_at_once(workers.tasks, of={CAPPED}) == CAP
    resume_owner(globex)
    wait_for(lambda: start_count(workers.tasks, task=PAUSED) == 2)
    wait_for(lambda: paused.runs.filter(state=State.SUCCEEDED).exists())
    # The next of the capped ones comes when one of the first has ended.
    assert start_count(workers.tasks, task=CAPPED) == CAP
    word.touch()
    wait_for(lambda: start_count(workers.tasks, task=CAPPED) > CAP)
    assert most_at_once(workers.tasks, of={CAPPED}) == CAP
    limit_owner(acme, max_running=None)
    figures = verdict(submission, paused).figures
    assert figures["starts"] == RUNS + 1, figures


def _epoch(client: redis.Redis) -> int:
    return int(client.hget(queue_key("jobs", "state"), "epoch") or 0)


def _age_of_epoch(client: redis.Redis) -> float:
    """Return for how many seconds the queue is in its epoch."""
    seconds, microseconds = client.time()
    return seconds + microseconds / 1e6 - _epoch(client) / 1e6


def _call(broker: OwnBroker, task: str, *arguments: Any, owner: str) -> None:
    """Call a plain task for an owner, over the scene's broker."""
    broker.app.send_task(
        task, arguments, queue="jobs", headers={"fairshift": {"owner": owner}}, ignore_result=True
    )


def _ended() -> int:
    return Run.objects.filter(state=State.SUCCEEDED, owner__slug="northwind").count()
