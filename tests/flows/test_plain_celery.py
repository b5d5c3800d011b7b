"""Plain Celery on a fair queue, on real workers: as on Kombu's own Redis transport."""

from uuid import uuid4

import pytest

from fleet import acting_for
from fleet.keys import queue_key
from tests.flows import plain
from tests.flows.processes import Layout, Processes
from tests.flows.world import broker_client, start_count
from tests.waiting import wait_for

LAYOUT = Layout(1, 1, lease=30)


@pytest.mark.parametrize(
    "way",
    ["signature", *(pytest.param(way, marks=pytest.mark.proof) for way in ("chain", "group"))],
)
def test_a_replaced_task_is_not_lost(stack: Processes, way: str) -> None:
    """The task that takes its place has its id, and is published while the first is leased."""
    made = plain.replaced.s(way, 7).set(ignore_result=False)
    results = [made.apply_async() for _ in range(20)]
    assert [result.get(timeout=300) for result in results] == [8] * 20


def test_the_same_id_published_twice_runs_twice(stack: Processes) -> None:
    """As in Celery: the id names the result, and not the message."""
    for number in range(20):
        task_id = str(uuid4())
        for _ in range(2):
            plain.noted.apply_async((number,), task_id=task_id)
    wait_for(lambda: start_count(stack.tasks, task="plain.noted") == 40)


def test_a_task_that_publishes_itself_runs_again(stack: Processes) -> None:
    """Under its own id, and the number of retries that it has."""
    plain.again.delay(10)
    wait_for(lambda: start_count(stack.tasks, task="plain.again") == 11)


@pytest.mark.parametrize(
    "whose", ["the same", pytest.param("another owner's", marks=pytest.mark.proof)]
)
def test_a_rejected_task_goes_behind_the_one_that_it_waits_for(
    stack: Processes, whose: str
) -> None:
    """With one slot it would otherwise try without end, and the other would never start."""
    other = str(uuid4())
    before = start_count(stack.tasks, task="plain.reject_until")
    plain.reject_until.delay(other)
    with acting_for("northwind" if whose == "another owner's" else "shared"):
        result = plain.noted.apply_async((5,), task_id=other, ignore_result=False)
    assert result.get(timeout=300) == 5
    assert plain.noted.s(6).set(ignore_result=False).delay().get(timeout=300) == 6
    assert start_count(stack.tasks, task="plain.reject_until") - before <= 50


@pytest.mark.proof
def test_a_success_that_was_not_acknowledged_is_not_repeated(processes: Processes) -> None:
    """With `worker_deduplicate_successful_tasks`: the flag is set after a lost worker too."""
    processes.start_worker("first", 1, DEDUPLICATE="1")
    processes.ready()
    result = plain.die_after_success.apply_async(ignore_result=False)
    wait_for(lambda: not processes.all_alive(), what="the worker to be gone")
    processes.start_worker("second", 1, DEDUPLICATE="1").ready()
    with broker_client() as client:
        wait_for(
            lambda: not client.exists(queue_key("jobs", "body")),
            what="the message to be acknowledged",
        )
    assert start_count(processes.tasks, task="plain.die_after_success") == 1
    assert result.get(timeout=300) == "stored"
