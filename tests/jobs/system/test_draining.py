"""jobs/system/draining.py: a worker is asked to take no more runs, and learns of it."""

from uuid import UUID

import pytest

from fleet import Node
from jobs.models import AuditEntry, Worker
from jobs.runs.reads.workers import state_of, with_state
from jobs.system.draining import drain_worker, undrain_worker
from jobs.system.heartbeat import beat, leave
from tests.jobs.scenes import living_worker, silence

pytestmark = pytest.mark.django_db


def state(worker: UUID) -> str:
    return state_of(with_state(Worker.objects.filter(pk=worker)).get())


def heard(worker: UUID, *, queues: tuple[str, ...]) -> bool:
    """Return whether the worker is told to drain with its next heartbeat."""
    return beat(Node(worker, "w1@here", 1, "prefork", 4, queues), []).drains


def test_each_heartbeat_says_that_it_drains_until_it_is_to_take_again() -> None:
    """A worker that missed one, or whose broker was away, learns of it by the next one."""
    worker = living_worker()
    assert not heard(worker, queues=("jobs",))
    row = Worker.objects.get(pk=worker)
    assert drain_worker(row)
    assert state(worker) == "draining"
    assert heard(worker, queues=("jobs",)) and heard(worker, queues=())
    assert row in Worker.objects.idle() and row not in Worker.objects.alive()
    assert Worker.objects.get(pk=worker).why_idle() == "is draining"
    assert undrain_worker(row)
    assert not heard(worker, queues=("jobs",))
    assert state(worker) == "alive"


@pytest.mark.parametrize("gone", ["stopped", "lost"])
def test_a_worker_that_has_gone_is_not_drained(gone: str) -> None:
    """Nobody would hear of it."""
    worker = living_worker()
    if gone == "lost":
        silence(worker, seconds=3_600)
    else:
        leave(worker)
    assert not drain_worker(Worker.objects.get(pk=worker))
    assert state(worker) == gone
    assert not AuditEntry.objects.exists()
