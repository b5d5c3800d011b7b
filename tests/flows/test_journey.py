"""The journey of a run, from submit to recorded history, through real workers."""

from typing import Any

import pytest
import redis
from django.db import transaction

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import IdempotencyKey, Outbox, Run, Submission
from tests.flows.processes import Processes
from tests.flows.world import ended, keys_with, states
from tests.tasks import add

STRAIGHT = ["queued", "admitted", "running", "succeeded"]


def test_a_run_is_recorded_with_its_whole_story(stack: Processes, verdict: Any) -> None:
    """Result, moves in order, times in order, the attempt and its worker stand in the rows."""
    run = submit(add, x=1, y=2, owner="acme")
    assert run.state == State.QUEUED
    run = ended(run)
    assert (run.state, run.result_value) == (State.SUCCEEDED, 3)
    assert states(run) == STRAIGHT
    moments = [at for _, at, _ in run.moves]
    assert moments == sorted(moments)
    assert run.created_at <= run.admitted_at <= run.started_at <= run.ended_at
    attempt = run.attempts.get()
    assert (attempt.number, attempt.token, attempt.outcome) == (1, 1, "succeeded")
    assert attempt.worker_id == run.worker_id
    assert run.worker.hostname.startswith("shared-")
    assert run.why_waiting() == ""
    verdict(run)


def test_a_submission_shows_progress_and_can_be_waited_for(stack: Processes, verdict: Any) -> None:
    """Its counts add up to its runs at any time, and `wait` returns when all have ended."""
    calls = [{"n": n, "seconds": 0.05} for n in range(20)]
    submission = submit_many("tests.record", calls, owner="acme", label="rollout")
    with pytest.raises(TimeoutError, match="of 20 runs of submission"):
        submission.wait(timeout=0)
    assert submission.progress.total == 20
    progress = submission.wait(timeout=300)
    assert (progress.ended, progress[State.SUCCEEDED]) == (20, 20)
    assert sorted(run.result_value["n"] for run in submission.runs.all()) == list(range(20))
    verdict(submission)


def test_a_scheduled_run_waits_for_its_time(stack: Processes, verdict: Any) -> None:
    """It starts once it is due, not before, and says so while it waits."""
    run = submit(add, x=1, y=2, owner="acme", countdown=0.5)
    assert run.state == State.SCHEDULED
    assert run.why_waiting().startswith("Due ")
    run = ended(run)
    assert states(run) == ["scheduled", *STRAIGHT]
    assert run.started_at >= run.due_at
    verdict(run)


class OutOfStock(Exception):
    """The caller changes its mind."""


def test_a_rolled_back_submit_leaves_nothing(
    stack: Processes, broker: redis.Redis, verdict: Any
) -> None:
    """No row, no key, no hint: as if it had not been asked for."""

    def ask() -> list[str]:
        with transaction.atomic():
            run = submit(add, x=1, y=2, owner="acme", idempotency_key="order-8")
            many = submit_many("tests.add", [{"x": n, "y": 1} for n in range(50)], owner="acme")
            made.extend([str(run.id), *(str(of_many.id) for of_many in many.runs.all())])
            raise OutOfStock

    made: list[str] = []
    with pytest.raises(OutOfStock):
        ask()
    for model in (Run, Submission, IdempotencyKey, Outbox):
        assert not model.objects.exists(), model
    assert keys_with(broker, made) == []
    # What comes after it passes through the same queue.
    verdict(ended(submit(add, x=1, y=2, owner="acme")))


def test_plain_celery_tasks_run_beside(stack: Processes, verdict: Any) -> None:
    """`.delay()` works as in Celery: no row, and its result is where Celery stores it."""
    called = add.apply_async((1, 2), ignore_result=False)
    run = submit(add, x=1, y=2, owner="acme")
    assert called.get(timeout=300) == 3
    assert not Run.objects.filter(id=called.id).exists()
    verdict(ended(run))
