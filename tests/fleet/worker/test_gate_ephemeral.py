"""fleet/worker/gate.py and outcomes.py, of runs without a row: their message is all there is."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import current_app, shared_task
from django.utils import timezone

from fleet import HEADER, BrokerUnavailable, Hint
from fleet.keys import queue_key
from fleet.worker import child
from fleet.worker import gate as gate_module
from fleet.worker import io_thread as io_thread_module
from jobs import submit
from jobs.catalog.context import RunContext, current_run
from jobs.catalog.registry import resolve
from jobs.models import Job, Owner
from jobs.runs.dispatch import broker as hint_broker
from jobs.wiring import application
from tests.fleet.nodes import Node, double
from tests.fleet.worker.test_gate import FailingPool
from tests.jobs.scenes import known, messages, states
from tests.jobs.without_history import due_hint, job_without_history, written_count
from tests.logged import logged

pytestmark = pytest.mark.usefixtures("committed")

NOW = datetime.now(UTC).replace(microsecond=0)
seen: list[RunContext | None] = []


@shared_task(name="tests.gate.look")
def look(**_arguments: int) -> None:
    seen.append(current_run())


@pytest.fixture
def job(acme: Owner) -> Job:
    """A job that doubles 21."""
    return job_without_history(acme, task="tests.gate.double", arguments={"x": 21})


def failing(owner: Owner, **fields: Any) -> Job:
    """Return a job whose every attempt fails."""
    return job_without_history(owner, key="bad", task="tests.gate.fail", arguments={}, **fields)


def published(job: Job, **facts: Any) -> Hint:
    """Publish the hint of a run of this job; return it."""
    hint = due_hint(job, NOW, **facts)
    hint_broker().publish([hint], timeout=5)
    return hint


def run_one(node: Node) -> Any:
    """Have the node do all that is to be done for the next message; return that."""
    message = node.start()
    node.turn(until=lambda: message.acknowledged)
    assert node.gate._held == {}
    node.channel.settle()
    return message


def delayed(client: redis.Redis) -> dict[str, float]:
    """Return the messages that are not due yet, and in how many seconds they are."""
    due = client.zrange(queue_key("jobs", "delayed"), 0, -1, withscores=True)
    return {name.decode(): at / 1_000_000 - time.time() for name, at in due}


def test_it_runs_and_nothing_is_written(node: Node, acme: Owner) -> None:
    """From the hint to the end; the worker reports no such run to the database."""
    job = job_without_history(acme, task="tests.gate.look", labels={"site": "north"})
    resolve(look)
    child.install({"tests.gate.look": current_app.tasks["tests.gate.look"]}, application())
    before = written_count()
    hint = published(job)
    message = node.admit()
    assert node.gate._held and node.gate.held() == []
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    node.channel.settle()
    assert known() == []
    node.end()  # what its connection has written is counted now
    assert written_count() == before
    [context] = seen
    assert context is not None
    assert (str(context.run_id), context.attempt, context.max_attempts) == (hint.run_id, 1, 3)
    assert (context.job_id, context.due_at, context.labels) == (job.pk, NOW, {"site": "north"})
    assert context.submission_id is None


def test_a_failed_try_publishes_the_next_one(
    node: Node, acme: Owner, broker: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """With the next attempt and token, after the back-off, and without any other message."""
    hint = published(failing(acme, backoff_seconds=40.0))
    before = written_count()
    run_one(node)
    [(name, seconds)] = delayed(broker).items()
    assert (name, known()) == (f"{hint.run_id}:2", [name])
    assert 18 < seconds <= 40
    assert logged(caplog) == []
    node.end()
    assert written_count() == before


def test_the_last_failure_is_said_once(
    node: Node, acme: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log, under a stable name; no row has it."""
    job = failing(acme, max_attempts=2)
    hint = published(job, attempt=2, token=2)
    run_one(node)
    assert logged(caplog) == [
        {
            "event": "ephemeral_run_failed",
            "level": "ERROR",
            "run_id": hint.run_id,
            "task": "tests.gate.fail",
            "attempt": 2,
            "job": job.pk,
            "owner": "acme",
            "due_at": NOW.isoformat(),
            "cause": "ValueError",
            "error": "the device said no",
        }
    ]
    assert known() == []


def test_its_message_stays_until_the_next_one_is_out(
    node: Node, acme: Owner, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is away is tried again, and the database does not wait for it."""
    monkeypatch.setattr(io_thread_module, "RETRY_SECONDS", 0.05)
    publishing, failures = node.io_thread._application.publish, []

    def publish(hints: Any) -> None:
        if len(failures) < 2:
            failures.append(message.acknowledged)
            raise BrokerUnavailable("away")
        publishing(hints)

    object.__setattr__(node.io_thread._application, "publish", publish)
    hint = published(failing(acme))
    message = node.start()
    node.turn(until=lambda: message.acknowledged)
    assert failures == [False, False]
    assert list(delayed(broker)) == [f"{hint.run_id}:2"]
    node.channel.settle()


@pytest.mark.parametrize("node", [FailingPool], indirect=True)
@pytest.mark.parametrize("error", [WorkerLostError("signal 9"), TimeLimitExceeded(5.0)])
@pytest.mark.parametrize("most", [3, 1])
def test_a_lost_child_is_decided_for_here(  # noqa: PLR0917  pytest passes them by name
    node: Node,
    acme: Owner,
    broker: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    most: int,
) -> None:
    """By the job's policy, as for runs with a row."""
    monkeypatch.setattr(FailingPool, "error", error, raising=False)
    hint = published(job_without_history(acme, task="tests.gate.double", max_attempts=most))
    run_one(node)
    assert list(delayed(broker)) == ([f"{hint.run_id}:2"] if most > 1 else [])


@pytest.mark.parametrize(
    ("of", "value"),
    [
        *(("job", value) for value in (0, -1, True, "7", 1.5, 2**63, [], {"id": 1})),
        *(("submission", value) for value in (0, "9", 2**63)),
        *(("token", value) for value in (0, None, "1", 2**53)),
        *(("retries", value) for value in (-1, None, "0", 2**31)),
    ],
)
def test_a_hint_that_no_job_can_have_is_dropped(
    node: Node, job: Job, of: str, value: object
) -> None:
    """The database is not asked: it would refuse the number, and the whole batch with it."""
    facts = {"owner": "acme", "submission": None, "run": "", "token": 1, "job": job.pk}
    headers: dict[str, Any] = {HEADER: facts}
    (headers if of == "retries" else facts)[of] = value
    run_id = due_hint(job).run_id
    facts["run"] = run_id
    current_app.send_task("tests.gate.double", task_id=run_id, queue="jobs", headers=headers)
    assert node.receive().acknowledged
    assert node.io_thread.longest_wait == 0


def test_a_paused_owner_s_hint_goes_back(node: Node, job: Job) -> None:
    """After a pause: no row would bring it again when the owner resumes."""
    hint = published(job)
    # By hand: the queue does not know of the pause.
    Owner.objects.update(paused_at=timezone.now())
    message = node.receive()
    node.turn(until=lambda: node.later)
    assert not message.acknowledged
    [(seconds, requeue, arguments)] = node.later
    assert seconds == gate_module.BUSY_SECONDS
    requeue(*arguments)
    node.channel.settle()
    assert known() == [f"{hint.run_id}:1"]
    Owner.objects.update(paused_at=None)
    run_one(node)
    assert known() == []


def test_what_has_no_slot_in_time_goes_back(node: Node, job: Job) -> None:
    """The same message, for the same attempt: there is no row to publish another.

    It comes here again while its first request still waits for a slot: it runs once.
    """
    hint = published(job)
    first = node.admit()
    [held] = node.gate._held.values()
    held.admitted_at -= 31
    node.gate.hand_back_late()
    assert (first.acknowledged, node.gate._held) == (True, {})
    node.channel.settle()
    assert messages()[0]["headers"][HEADER]["token"] == 1
    assert known() == [f"{hint.run_id}:1"]
    second = node.receive()
    node.turn(until=lambda: len(node.begun) == 2)
    [held] = node.gate._held.values()
    node.begin()
    assert not held.in_pool
    node.begin()
    node.turn(until=lambda: second.acknowledged)
    node.channel.settle()
    assert known() == []


def test_with_a_lost_connection_it_is_let_go(node: Node, job: Job) -> None:
    """The message comes again, perhaps to this worker, which must not hold it twice."""
    published(job)
    node.admit()
    node.gate.reclaim([])
    assert node.gate._held == {}


def test_a_message_that_comes_twice_waits_for_itself(node: Node, job: Job) -> None:
    """After a lease that ran out: dropped, it would be gone with this worker."""
    published(job)
    first = node.admit()
    # As a queue does that takes this worker for dead.
    tag = first.delivery_tag
    node.channel.qos.leases.give_back(tag)
    node.channel.settle()
    second = node.receive()
    [(requeue, arguments)] = [later[1:] for later in node.later if later[1].__name__ != "_look"]
    assert not second.acknowledged
    node.begin()
    node.turn(until=lambda: first.acknowledged)
    requeue(*arguments)
    node.channel.settle()
    assert len(known()) == 1


def test_a_forged_hint_does_not_take_a_durable_run_s_place(
    node: Node, acme: Owner, job: Job
) -> None:
    """With the same id, while this worker holds that run: the heartbeat still names it."""
    run = submit(double, 1, owner=acme)
    node.admit()
    forged = due_hint(job, NOW, run_id=str(run.id), token=7)
    hint_broker().publish([forged], timeout=5)
    node.receive()
    node.turn(until=lambda: len(node.begun) == 2)
    assert node.gate.held() == [str(run.id)]
    for _ in range(2):
        node.begin()
    node.turn(until=lambda: node.gate._held == {})
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
