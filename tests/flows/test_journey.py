"""The journey of a run, from submit to recorded history, through real workers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from jobs import asubmit, submit, submit_many
from jobs.core.errors import IdempotencyConflict, StateConflict
from jobs.core.states import State
from jobs.models import IdempotencyKey, Outbox, Owner, Run, Submission, Target
from jobs.owners.limits import pause_owner
from tests.flows.processes import Processes
from tests.flows.world import bodies, ended, keys_with, make_owner, outcomes, reached, states
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


def test_a_deadline_ends_what_has_not_started(stack: Processes, owner: Owner, verdict: Any) -> None:
    """A run that may not start in time expires, and never starts."""
    pause_owner(owner, reason="moving house")
    run = ended(submit(add, x=1, y=2, owner="acme", deadline_seconds=0.3))
    assert run.state == State.EXPIRED
    assert run.moves[-1][2] == "deadline passed"
    assert bodies(stack.tasks, run) == []
    verdict(run)


def test_labels_and_targets_find_runs_again(stack: Processes, verdict: Any) -> None:
    """Labels are searched by value; targets are made once, and may name an argument."""
    calls = [{"n": n} for n in (1, 2, 1)]
    submission = submit_many(
        "tests.record", calls, owner="acme", labels={"site": "paris"}, target="device-{n}"
    )
    submission.wait(timeout=300)
    assert Run.objects.labelled(site="paris").count() == 3
    assert Run.objects.labelled(site="rome").count() == 0
    assert sorted(Target.objects.values_list("name", flat=True)) == ["device-1", "device-2"]
    assert Target.objects.get(name="device-1").runs.count() == 2
    verdict(submission)


def test_a_key_makes_one_run(stack: Processes, verdict: Any) -> None:
    """Callers that ask at once under one key get one run; other arguments are a conflict."""

    def ask(_: int) -> Any:
        try:
            return submit(add, x=1, y=2, owner="acme", idempotency_key="order-7").id
        finally:
            connections.close_all()

    make_owner("globex")
    with ThreadPoolExecutor(8) as callers:
        [run_id] = set(callers.map(ask, range(16)))
    with pytest.raises(IdempotencyConflict):
        submit(add, x=1, y=3, owner="acme", idempotency_key="order-7")
    other = submit(add, x=1, y=3, owner="globex", idempotency_key="order-7")
    verdict(ended(run_id), ended(other))


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


def test_submits_come_from_threads_and_from_async_code(stack: Processes, verdict: Any) -> None:
    """Both ways make runs like any other."""

    def from_thread(n: int) -> Run:
        try:
            return submit(add, x=n, y=1, owner="acme")
        finally:
            connections.close_all()

    async def from_async() -> list[Run]:
        runs = [await asubmit(add, x=n, y=1, owner="acme") for n in range(3)]
        await sync_to_async(connections.close_all)()
        return runs

    with ThreadPoolExecutor(4) as threads:
        runs = [*threads.map(from_thread, range(8)), *asyncio.run(from_async())]
    done = [ended(run) for run in runs]
    assert [run.result_value for run in done] == [*range(1, 9), 1, 2, 3]
    verdict(*done)


def test_an_operator_retries_what_has_ended(stack: Processes, verdict: Any) -> None:
    """It is queued again with fresh attempts and the next token; a success stays as it is."""
    failed = ended(submit("tests.fail", times=1, owner="acme", max_attempts=1))
    waiting = submit(add, x=1, y=2, owner="acme", countdown=60)
    waiting.cancel(reason="not today")
    for run in (failed, waiting):
        run.retry()
    failed, waiting = reached(failed, State.FAILED), ended(waiting)
    assert outcomes(failed) == ["failed", "failed"]
    assert [(row.token, row.number) for row in failed.attempts] == [(1, 1), (2, 2)]
    assert states(waiting) == ["scheduled", "cancelled", *STRAIGHT]
    with pytest.raises(StateConflict):
        waiting.retry()
    verdict(failed, waiting)


def test_plain_celery_tasks_run_beside(stack: Processes, verdict: Any) -> None:
    """`.delay()` works as in Celery: no row, and its result is where Celery stores it."""
    called = add.apply_async((1, 2), ignore_result=False)
    run = submit(add, x=1, y=2, owner="acme")
    assert called.get(timeout=300) == 3
    assert not Run.objects.filter(id=called.id).exists()
    verdict(ended(run))
