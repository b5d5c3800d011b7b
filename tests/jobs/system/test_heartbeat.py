"""jobs/system/heartbeat.py: workers live in PostgreSQL and on its clock."""

from dataclasses import replace
from uuid import uuid4

import pytest

from fleet import Kind, Node, Orders
from jobs.core import sql
from jobs.models import Owner, Worker
from jobs.runs.cancellation import cancel_runs
from jobs.system import heartbeat
from jobs.system.heartbeat import beat, leave
from tests.jobs.scenes import admitted, age, recorded, states, submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> Node:
    return Node(uuid4(), "w1@here", 4711, "prefork", 4, ["jobs", "slow"], ["tests.add"])


def test_the_first_beat_makes_the_row(node: Node) -> None:
    """With all that the worker says of itself."""
    assert beat(node, []) == Orders([])
    worker = Worker.objects.alive().get()
    for name in ("id", "hostname", "pid", "pool", "slots", "queues", "tasks"):
        assert getattr(worker, name) == getattr(node, name), name
    assert worker.version


@pytest.mark.parametrize("shift", [0, 90, -7200])
def test_the_clock_of_its_machine_is_recorded(
    node: Node, monkeypatch: pytest.MonkeyPatch, shift: float
) -> None:
    """Seconds ahead of PostgreSQL's, from the second heartbeat on; nothing is decided by it."""
    beat(node, [])
    assert Worker.objects.get().clock_ahead_seconds is None
    right = heartbeat.time.time
    monkeypatch.setattr(heartbeat.time, "time", lambda: right() + shift)
    beat(node, [])
    ahead = Worker.objects.alive().get().clock_ahead_seconds
    assert ahead is not None and abs(ahead - shift) < 1


def test_workers_of_an_older_version_count(node: Node, acme: Owner) -> None:
    """They write neither tasks nor clock nor answers of Redis: alive, and they know each task."""
    sql.query(
        "INSERT INTO jobs_worker (id, hostname, pid, pool, slots, queues, version, started_at,"
        " heartbeat_at) VALUES (%s, 'old@here', 1, 'prefork', 4, '[\"jobs\"]', '0.0.9',"
        " clock_timestamp(), clock_timestamp())",
        [node.id],
    )
    sql.query("UPDATE jobs_worker SET heartbeat_at = clock_timestamp() WHERE id = %s", [node.id])
    worker = Worker.objects.alive().get()
    assert worker.knows("tests.add") and worker.clock_ahead_seconds is None
    [run] = submitted(acme)
    assert recorded(admitted(node.id, run), Kind.STARTED) == "running"


@pytest.mark.parametrize(("slots", "why"), [(0, "has no process"), (4, "consumes no queue")])
def test_a_worker_that_takes_nothing_does_not_count(
    acme: Owner, node: Node, slots: int, why: str
) -> None:
    """Its runs stay its own, since it beats; with a queue again, it counts."""
    beat(node, [])
    [run] = submitted(acme)
    admitted(node.id, run)
    age(run, "admitted_at", seconds=31)
    beat(replace(node, slots=slots, queues=[]), [str(run.id)])
    assert not Worker.objects.alive().exists()
    assert Worker.objects.idle().get().why_idle() == why
    assert states(run)[-1] == "admitted"
    beat(node, [str(run.id)])
    assert Worker.objects.alive().get().why_idle() == ""
    assert not Worker.objects.idle().exists()


@pytest.mark.parametrize(("seconds", "counts"), [(0.0, True), (29.0, True), (31.0, False)])
def test_a_worker_that_redis_does_not_answer_does_not_count(
    node: Node, seconds: float, counts: bool
) -> None:
    """It beats and takes no runs; with an answer, it counts again."""
    beat(node, [])
    beat(replace(node, redis_silent_seconds=seconds), [])
    assert Worker.objects.alive().exists() == counts
    assert Worker.objects.idle().exists() == Worker.objects.without_redis().exists() != counts
    assert Worker.objects.get().why_idle() == ("" if counts else "cannot use Redis")
    beat(node, [])
    assert Worker.objects.alive().exists() and not Worker.objects.idle().exists()


def test_only_a_worker_that_redis_answers_not_while_it_answers_others_is_cut_off(
    node: Node,
) -> None:
    """Its health check fails then: a restart does not help where Redis is away from all."""
    silent = replace(node, redis_silent_seconds=31.0)
    other = replace(node, id=uuid4(), hostname="w2@here")
    beat(silent, [])
    assert not beat(silent, []).is_cut_off
    beat(replace(other, redis_silent_seconds=40.0), [])
    assert not beat(silent, []).is_cut_off
    beat(other, [])
    assert beat(silent, []).is_cut_off
    assert not beat(other, []).is_cut_off
    assert not beat(replace(silent, redis_silent_seconds=4.0), []).is_cut_off
    leave(other.id)
    assert not beat(silent, []).is_cut_off


def test_a_beat_brings_back_what_is_to_be_cancelled(acme: Owner, node: Node) -> None:
    """Of this worker's own runs, at every beat until they have ended."""
    beat(node, [])
    runs = submitted(acme, 2)
    at, _ = admitted(node.id, runs[0]), admitted(node.id, runs[1])
    recorded(at, Kind.STARTED)
    cancel_runs([runs[0].id])
    for _ in range(2):
        assert beat(node, [str(run.id) for run in runs]).cancel == [str(runs[0].id)]
    assert beat(Node(uuid4(), "w2@here", 1, "prefork", 4, ["jobs"]), []).cancel == []
    recorded(at, Kind.CANCELLED)
    assert beat(node, []) == Orders([])


def test_a_beat_gives_up_what_the_worker_does_not_hold(acme: Owner, node: Node) -> None:
    """Once a lease has gone by since it was admitted."""
    beat(node, [])
    [run] = submitted(acme)
    admitted(node.id, run)
    beat(node, [])
    assert states(run)[-1] == "admitted"
    age(run, "admitted_at", seconds=31)
    beat(node, [])
    assert states(run)[-1] == "queued"


def test_who_has_left_stays_away(node: Node) -> None:
    """A late beat does not bring a stopped worker back to life."""
    beat(node, [])
    leave(node.id)
    assert not Worker.objects.alive().exists()
    beat(node, [])
    assert not Worker.objects.alive().exists()
