"""A worker's connections to Redis break: they are opened again where they were."""

import pytest
from celery import group

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import Run
from tests.flows.processes import Processes
from tests.flows.world import broker_client, ended, event_count, start_count
from tests.proxy import NONE, Faults, Proxy
from tests.tasks import record
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

RUNS = 40
CUTS = 4
RESTARTED = "Connection to broker lost"
"""What Celery's consumer says when it starts anew."""


def test_cut_connections_cost_a_moment_and_no_restart(processes: Processes, proxy: Proxy) -> None:
    """Each run and each plain task starts once, whatever was in transit; the worker reconnects.

    A restart of the consumer needs some 60 replies of Redis in a row, and a network that loses each
    tenth of them never gives it.
    """
    worker = processes.start_worker("cut", 2, REDIS_URL=proxy.url)
    processes.ready()
    submit_many("tests.record", [{"n": n, "seconds": 0.1} for n in range(RUNS)], owner="acme")
    group(record.s(RUNS + n, 0.1) for n in range(RUNS)).delay()
    for cut in range(CUTS):
        wait_for(lambda cut=cut: start_count(processes.tasks) > cut * RUNS // CUTS)  # type: ignore[misc]
        proxy.cut_all()
    wait_for(lambda: start_count(processes.tasks) >= 2 * RUNS, seconds=60)
    wait_for(lambda: not Run.objects.exclude(state=State.SUCCEEDED).exists())
    assert start_count(processes.tasks) == 2 * RUNS
    assert worker.is_alive
    assert RESTARTED not in worker.log.read_text()
    assert record.app.control.ping(timeout=2), "remote control is not heard any more"


def test_a_take_without_an_answer_is_sent_again(processes: Processes, proxy: Proxy) -> None:
    """Once Redis answers, the worker takes within seconds: its consumer does not restart."""
    worker = processes.start_worker("hung", 1, REDIS_URL=proxy.url)
    processes.ready()
    proxy.faults = Faults(lost=1.0, command=b"EVALSHA", hangs=True)
    run = submit("tests.record", 0, owner="acme")
    wait_for(lambda: "does not answer a take" in worker.log.read_text())
    proxy.faults = NONE
    assert ended(run).state == State.SUCCEEDED
    assert RESTARTED not in worker.log.read_text()


def test_what_ends_meanwhile_on_a_stock_queue_keeps_no_slot(
    processes: Processes, proxy: Proxy
) -> None:
    """Redis gets its end when it is back; the worker's only slot takes the next one then."""
    processes.start_worker("stock", 1, queue="stock", REDIS_URL=proxy.url)
    processes.ready()
    record.apply_async((0, 1.0), queue="stock")
    wait_for(lambda: start_count(processes.tasks) == 1)
    proxy.faults = Faults(lost=1.0, hangs=False)
    proxy.cut_all()
    wait_for(lambda: event_count(processes.tasks, "end") == 1)
    wait_for(lambda: "Redis was lost" in processes.started[0].log.read_text())
    lost = proxy.counts["lost"]
    wait_for(lambda: proxy.counts["lost"] > lost + 2)  # also its acknowledgement by now
    proxy.faults = NONE
    record.apply_async((1, 0.0), queue="stock")
    record.apply_async((2, 0.0), queue="stock")
    wait_for(lambda: event_count(processes.tasks, "end") == 3)
    with broker_client() as client:
        wait_for(lambda: not client.hlen("unacked"), what="all to be acknowledged")
