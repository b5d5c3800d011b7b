"""A worker that drains takes no more runs, ends those that it has, and can take again."""

import signal
from socket import gethostname
from typing import Any

import pytest
import redis

from jobs import submit
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Owner, Run, Worker
from jobs.system.draining import drain_worker, undrain_worker
from tests.flows.processes import Layout, Processes
from tests.flows.world import ended, outcomes, reached
from tests.waiting import stays_false, wait_for

pytestmark = pytest.mark.proof

WORKER = f"shared-0@{gethostname()}"
# What waits in the worker is given back when a lease has passed, whether it drains or not.
LAYOUT = Layout(workers=1, slots=2, lease=15.0)
LONG = 6.0


def row() -> Worker:
    return Worker.objects.get(hostname=WORKER, stopped_at=None)


def drained() -> None:
    """Drain the worker, and wait until it has heard of it."""
    assert drain_worker(row())
    wait_for(lambda: row().queues == [], what="the worker to take from no queue")


def at_work(owner: Owner, count: int, seconds: float) -> list[Run]:
    """Submit runs, and return those that run once both slots are taken."""
    for n in range(count):
        submit("tests.record", n=n, seconds=seconds, owner=owner)
    active = Run.objects.filter(state=State.RUNNING)
    wait_for(lambda: active.count() == 2, what="two runs in two slots")
    return list(active)


def test_it_ends_its_runs_and_gives_back_what_waits(
    stack: Processes, owner: Owner, verdict: Any
) -> None:
    """Another worker takes at once what has waited in it; it ends its own runs."""
    held = more_than_slots(owner)
    taken = Run.objects.filter(state__in=ACTIVE)
    drained()
    wait_for(
        lambda: set(taken.all()) == set(held),
        what="what has not begun to be given back",
    )
    other = stack.start_worker("other", slots=4)
    stack.ready()
    rest = list(Run.objects.exclude(state__in=ENDED).exclude(pk__in=[run.pk for run in held]))
    for run in rest:
        reached(run, State.RUNNING)
    assert {run.worker.hostname for run in Run.objects.filter(pk__in=[one.pk for one in rest])} == {
        other_name()
    }
    runs = [ended(run, seconds=60) for run in (*held, *rest)]
    assert [outcomes(run) for run in runs[:2]] == [["succeeded"]] * 2
    assert {outcomes(run)[-1] for run in runs[2:]} == {"succeeded"}
    other.stop()
    undrain_worker(row())
    wait_for(lambda: row().queues == ["jobs"], what="the worker to take again")
    assert outcomes(ended(submit("tests.add", x=1, y=2, owner=owner))) == ["succeeded"]
    verdict(*Run.objects.all())


def test_a_lost_connection_does_not_make_it_take_again(
    stack: Processes, owner: Owner, broker: redis.Redis, verdict: Any
) -> None:
    """The worker connects anew, and takes nothing until it is told to."""
    drained()
    broker.client_kill_filter(_type="normal", skipme=True)
    broker.client_kill_filter(_type="pubsub")
    run = submit("tests.add", x=1, y=2, owner=owner)
    first = row().heartbeat_at
    wait_for(lambda: (row().heartbeat_at - first).total_seconds() > LONG, what="more heartbeats")
    assert Run.objects.get(id=run.id).state == State.QUEUED
    undrain_worker(row())
    assert outcomes(ended(run)) == ["succeeded"]
    verdict(run)


def test_a_draining_worker_can_be_stopped(stack: Processes, owner: Owner, verdict: Any) -> None:
    """It ends its runs, as every worker that is stopped, and starts no other one."""
    held = at_work(owner, 4, 3.0)
    drained()
    [worker] = [one for one in stack.started if one.name.startswith("shared")]
    worker.signal(signal.SIGTERM)
    wait_for(lambda: not worker.is_alive, seconds=30, what="the worker's end")
    runs = list(Run.objects.order_by("id"))
    assert [run.state for run in runs if run in held] == [State.SUCCEEDED] * 2
    waiting = [run for run in runs if run not in held]
    assert [run.state for run in waiting] == [State.QUEUED] * 2
    assert all(run.cancel() for run in waiting)
    verdict(*runs)


def more_than_slots(owner: Owner) -> list[Run]:
    """Return two long runs that run while the worker has taken more of them.

    It takes more than it has slots if their known run time is short. So short ones come first;
    they come again when the machine was so slow that they took long.
    """
    taken = Run.objects.filter(state__in=ACTIVE)
    for _ in range(5):
        for run in [submit("tests.record", n=n, owner=owner) for n in range(30)]:
            ended(run)
        held = at_work(owner, 6, LONG)
        if not stays_false(lambda: taken.count() > 2, seconds=LONG / 3):
            return held
        for run in Run.objects.filter(state=State.QUEUED):
            run.cancel()
        for run in held:
            ended(run)
    pytest.fail("The worker takes no more runs than it has slots.")


def other_name() -> str:
    return f"other@{gethostname()}"
