"""fleet/worker/gate.py: a hint starts once its row is admitted, and is acked once recorded."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from billiard.einfo import ExceptionInfo
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import signals
from celery.concurrency.solo import TaskPool
from celery.worker.request import Request
from django_celery_results.models import TaskResult

from fleet import HEADER
from fleet.worker import gate as gate_module
from jobs import submit
from jobs.catalog.registry import resolve
from jobs.core.conf import setting
from jobs.models import Owner, Run
from jobs.runs.cancellation import cancel_runs
from jobs.runs.unblocking import publish_unblocked
from jobs.system.promotion import promote
from jobs.system.rescue import rescue_runs
from tests.fleet.nodes import Node, double
from tests.jobs.scenes import (
    admitted,
    held_by_somebody,
    hinted,
    known,
    living_worker,
    silence,
    states,
)

pytestmark = pytest.mark.usefixtures("committed")


class FailingPool(TaskPool):
    """A pool whose children die of their task."""

    error: BaseException

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.on_apply = self._lose

    def _lose(self, *_args: Any, **options: Any) -> None:
        options["accept_callback"](4711, time.monotonic())
        try:
            raise self.error
        except BaseException:
            options["error_callback"](ExceptionInfo())
        if isinstance(self.error, TimeLimitExceeded):
            # As billiard does for a hard limit.
            options["timeout_callback"](soft=False, timeout=self.error.args[0])


def run_one(node: Node, run: Run) -> Any:
    """Have the node do all that is to be done for one run; return its message."""
    message = node.start()
    node.turn(until=lambda: message.acknowledged)
    run.refresh_from_db()
    assert node.gate.held() == []
    return message


def test_a_hint_is_admitted_run_recorded_and_acknowledged(node: Node, acme: Owner) -> None:
    """In this order: the message outlives everything that can go wrong before."""
    run = submit(double, 21, owner=acme)
    message = node.start()
    assert node.gate.held() == [str(run.id)]
    assert not message.acknowledged
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "running", "succeeded"]
    assert (run.result_value, run.worker_id) == (42, node.id)
    assert node.gate.held() == []
    node.channel.qos.restore_unacked()
    node.channel.settle()
    assert known() == []


def test_a_busy_row_s_hint_goes_back_after_a_moment(node: Node, acme: Owner) -> None:
    """Not at once, or it would loop."""
    run = submit(double, 1, owner=acme)
    # For a worker without heartbeats every row counts as busy.
    silence(node.id, seconds=60)
    message = node.receive()
    node.turn(until=lambda: node.later)
    assert (message.acknowledged, hinted()) == (False, [])
    [(seconds, requeue, arguments)] = node.later
    assert seconds == gate_module.BUSY_SECONDS
    requeue(*arguments)
    node.channel.settle()
    assert hinted() == [run.id]


def test_a_hint_that_is_published_while_it_is_dropped_comes_again(
    node: Node, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis does not have the drop yet: it must not remove the new publication."""
    # A worker's loop sends acknowledgements in batches; without one, each is sent at once.
    monkeypatch.setattr(node.channel.leases, "has_worker", True)
    run = submit(double, 1, owner=acme)
    Owner.objects.update(paused_at="2026-01-01T00:00Z")
    message = node.receive()
    node.turn(until=lambda: message.acknowledged)
    assert known() == [f"{run.id}:1"]
    Owner.objects.update(paused_at=None)
    assert publish_unblocked(owner_ids=None, lock_keys=None) == 1
    assert hinted() == []
    node.channel.settle()
    assert hinted() == [run.id]


def test_what_is_cancelled_while_it_waits_for_a_slot_never_starts(node: Node, acme: Owner) -> None:
    """The cancel came with a heartbeat, in time."""
    run = submit(double, 1, owner=acme)
    message = node.admit()
    cancel_runs([run.id])
    node.gate.cancel(str(run.id))
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "cancelling", "cancelled"]
    assert run.started_at is None


def test_what_has_no_slot_in_time_is_handed_back(node: Node, acme: Owner) -> None:
    """Past its start deadline another worker may have it; no attempt is spent."""
    run = submit(double, 1, owner=acme)
    message = node.admit()
    node.gate.hand_back_late()
    assert not message.acknowledged
    node.gate._held[str(run.id)].admitted_at -= 31
    node.gate.hand_back_late()
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "queued"]
    assert (run.attempt_count, hinted()) == (0, [run.id])
    node.begin()
    assert states(run)[-1] == "queued"


def test_nothing_starts_when_the_lease_of_its_worker_has_ended(node: Node, acme: Owner) -> None:
    """Rescue may have given it to another worker before its own start deadline."""
    run = submit(double, 1, owner=acme)
    message = node.admit()
    node.gate.lease_ends = lambda: time.monotonic() - 0.1
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "queued"]


@pytest.mark.parametrize("seconds_less", [0, 9], ids=["its own deadline", "its worker's lease"])
def test_a_child_knows_by_when_it_is_to_begin(node: Node, acme: Owner, seconds_less: float) -> None:
    """Frozen between the gate's check and its own, it would begin another worker's run.

    By the run's own start deadline, or the end of its worker's lease if that is earlier.
    """
    run = submit(double, 1, owner=acme)
    node.admit()
    held = node.gate._held[str(run.id)]
    begins_by = held.admitted_at + setting("LEASE_SECONDS") - seconds_less
    if seconds_less:
        node.gate.lease_ends = lambda: begins_by
    node.begin()
    assert held.request.request_dict[HEADER]["begins_by"] == begins_by


def test_what_is_handed_back_gets_no_slot_before_its_row_says_so(node: Node, acme: Owner) -> None:
    """From that report on it may start elsewhere."""
    run = submit(double, 1, owner=acme)
    message = node.admit()
    held = node.gate._held[str(run.id)]
    node.gate.close()
    node.begin()
    assert not held.in_pool
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "queued"]


def test_a_last_attempt_starts_when_its_start_is_committed(node: Node, acme: Owner) -> None:
    """Were its worker to die before, it would not be known whether it has started."""
    run = submit(double, 1, owner=acme, max_attempts=1)
    message = node.admit()
    with held_by_somebody(run):
        node.begin()
        assert node.gate.starting_count == 1
        node.gate.hand_back_late()
        node.gate.close()
        assert (states(run), node.gate.starting_count) == (["queued", "admitted"], 1)
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "running", "succeeded"]


def test_a_last_attempt_that_is_somebody_else_s_does_not_start(node: Node, acme: Owner) -> None:
    """The commit of its start is refused: its worker was thought to be gone."""
    run = submit(double, 1, owner=acme, max_attempts=1)
    message = node.admit()
    silence(node.id, seconds=31)
    assert rescue_runs() == 1
    begun: list[Any] = []
    node.gate._pool_apply = lambda *args, **_options: begun.append(args)
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    assert (begun, states(run)) == ([], ["queued", "admitted", "queued"])
    assert node.gate.held() == []


def test_a_last_attempt_that_is_cancelled_at_its_start_does_not_start(
    node: Node, acme: Owner
) -> None:
    """The row has the cancel, and this worker does not know it yet."""
    run = submit(double, 1, owner=acme, max_attempts=1)
    message = node.admit()
    cancel_runs([run.id])
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "cancelling", "cancelled"]
    assert node.gate.held() == []


def test_a_last_attempt_whose_moment_has_passed_is_tried_again(node: Node, acme: Owner) -> None:
    """Its worker slept while its start was committed: another may have it by now."""
    run = submit(double, 1, owner=acme, max_attempts=1)
    message = node.admit()
    node.begin()
    node.gate._held[str(run.id)].admitted_at -= 31
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "running", "retrying"]
    assert run.attempts.get().error_type == "NotBegun"
    assert promote() == 1
    # It did nothing, so it is no start, and not spent.
    again = admitted(living_worker("w2@here"), run)
    assert (again.attempt, again.records_start_first) == (1, True)


def test_what_is_recorded_when_the_pool_has_closed_is_tried_again(node: Node, acme: Owner) -> None:
    """A closed pool accepts a job silently, and never reports it."""
    run = submit(double, 1, owner=acme, max_attempts=1)
    message = node.admit()
    node.gate._pool_apply = lambda *_args, **_options: None
    node.begin()
    node.gate.pool_closes()
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "running", "retrying"]


def test_a_stopping_node_hands_back_and_takes_nothing_more(node: Node, acme: Owner) -> None:
    """Runs that are not in the pool start elsewhere, without waiting for a lease."""
    runs = [submit(double, number, owner=acme) for number in range(2)]
    message = node.admit()
    node.gate.close()
    node.turn(until=lambda: message.acknowledged)
    node.receive()
    node.channel.settle()
    assert states(runs[0]) == ["queued", "admitted", "queued"]
    assert set(hinted()) == {run.id for run in runs}
    assert admitted(living_worker("w2@here"), runs[0]).attempt == 1


@pytest.mark.parametrize("node", [FailingPool], indirect=True)
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (WorkerLostError("signal 9"), "child lost"),
        (TimeLimitExceeded(5.0), "time limit"),
        (SystemExit(3), "child lost"),
    ],
)
@pytest.mark.parametrize(("most", "state"), [(3, "retrying"), (1, "failed")])
def test_a_lost_child_is_decided_for_here(  # noqa: PLR0917  pytest passes them by name
    node: Node,
    acme: Owner,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    cause: str,
    most: int,
    state: str,
) -> None:
    """Its report is missing, the policy is not."""
    monkeypatch.setattr(FailingPool, "error", error, raising=False)
    run = submit(double, 1, owner=acme, max_attempts=most)
    run_one(node, run)
    assert states(run) == ["queued", "admitted", "running", state]
    assert run.attempts.get().outcome == cause
    assert run.error_message


def test_a_payload_that_cannot_be_dressed_fails_its_run(
    node: Node, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node stays as it was, and Celery stores no result of it."""
    monkeypatch.setattr(resolve(double), "ignore_result", False)
    run = submit(double, 1, owner=acme)
    Run.objects.filter(id=run.id).update(payload=b'{"not": "a body"}')
    message = node.receive()
    node.turn(until=lambda: message.acknowledged)
    assert states(run) == ["queued", "admitted", "failed"]
    assert node.begun == []
    assert not TaskResult.objects.exists()
    run_one(node, submit(double, 2, owner=acme))


@pytest.fixture
def received(node: Node) -> Iterator[list[Request]]:
    """The requests that the gate says have been received."""
    requests: list[Request] = []

    def receive(request: Request, **_signal: Any) -> None:
        requests.append(request)

    signals.task_received.connect(receive, sender=node.consumer)
    yield requests
    signals.task_received.disconnect(receive, sender=node.consumer)


def test_celery_keeps_a_run_within_its_task_s_rate_before_it_is_admitted(
    node: Node, acme: Owner, received: list[Request]
) -> None:
    """So it waits as a message, and not admitted, past its start deadline.

    Celery has said by then that it was received.
    """
    run = submit(double, 1, owner=acme)
    node.consumer.task_buckets[double.name] = object()
    message = node.channel.basic_get("jobs")
    assert not node.gate.take_hint(message)
    assert states(run) == ["queued"]
    node.gate.on_request(node.request(message))
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    assert states(run)[-1] == "succeeded"
    assert received == []


def test_what_celery_says_of_a_message_is_said_of_an_admitted_run(
    node: Node, acme: Owner, received: list[Request]
) -> None:
    """Not of a refused one; and nothing of its arguments. The pool may have to grow for it."""
    scaled: list[Request] = []
    node.consumer.on_task_message.add(scaled.append)
    run = submit(double, 21, owner=acme)
    Owner.objects.update(paused_at="2026-01-01T00:00Z")
    refused = node.receive()
    node.turn(until=lambda: refused.acknowledged)
    assert received == []
    Owner.objects.update(paused_at=None)
    publish_unblocked(owner_ids=None, lock_keys=None)
    node.channel.settle()
    node.admit()
    assert scaled == received
    [request] = received
    assert (request.id, request.name, request.argsrepr) == (str(run.id), double.name, "…")


def test_a_message_cannot_end_its_run_by_a_time_of_its_own(node: Node, acme: Owner) -> None:
    """The row decides when a run may start, and until when."""
    run = submit(double, 21, owner=acme)
    message = node.channel.basic_get("jobs")
    message.headers.update(expires="no time", eta="no time")
    assert node.gate.take_hint(message)
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    assert states(run)[-1] == "succeeded"


def test_events_of_a_run_have_no_values(node: Node, acme: Owner) -> None:
    """Also when Celery has given its request another dispatcher, as after a lost connection."""
    submit(double, 21, owner=acme)
    node.admit()
    [request] = node.begun
    sent: list[dict[str, Any]] = []
    request.eventer = SimpleNamespace(enabled=True, send=lambda _type, **each: sent.append(each))
    request.send_event("task-succeeded", result="secret", runtime=1.0)
    assert sent == [{"uuid": request.id, "runtime": 1.0}]


def test_a_message_does_not_decide_how_its_run_is_named(node: Node, acme: Owner) -> None:
    """Under another spelling of its id, its task would run without what a run has."""
    run = submit(double, 21, owner=acme)
    message = node.channel.basic_get("jobs")
    message.headers["id"] = str(run.id).upper()
    assert node.gate.take_hint(message)
    node.begin()
    node.turn(until=lambda: message.acknowledged)
    run.refresh_from_db()
    assert run.result_value == 42


def test_a_hint_that_a_reader_gives_back_keeps_its_place(node: Node, acme: Owner) -> None:
    """Its row knows how long it has waited."""
    first, second = (submit(double, 1, owner=acme) for _ in range(2))
    node.channel.basic_get("jobs").requeue()
    node.channel.settle()
    assert hinted() == [first.id, second.id]
