"""jobs/system/rescue.py: what a lost worker held is tried again, or ends as a dead letter."""

import time
from typing import Any
from uuid import UUID

import pytest
from celery import current_app
from celery.result import AsyncResult
from django_celery_results.models import TaskResult

from fleet import Admission, Kind
from jobs import submit
from jobs.models import Owner, Run, Worker
from jobs.runs.cancellation import cancel_runs
from jobs.system import rescue
from jobs.system.heartbeat import leave
from jobs.system.promotion import promote
from jobs.system.rescue import rescue_runs
from tests.jobs.scenes import (
    admitted,
    age,
    ask,
    held_by_somebody,
    hinted,
    living_worker,
    lose_hints,
    recorded,
    silence,
    states,
    submitted,
)


@pytest.fixture
def worker(db: None) -> UUID:
    return living_worker("w1@here")


def started(worker: UUID, run: Run) -> Admission:
    at = admitted(worker, run)
    recorded(at, Kind.STARTED)
    return at


def taken_and_lost(run: Run) -> None:
    """Let a worker take a run, and be lost before it starts it."""
    worker = living_worker()
    admitted(worker, run)
    leave(worker)


@pytest.fixture
def running(acme: Owner, worker: UUID) -> Run:
    """A run that the worker has started."""
    [run] = submitted(acme)
    started(worker, run)
    return run


def test_what_a_living_worker_holds_is_its_own(running: Run) -> None:
    """However long it runs."""
    age(running, "started_at", seconds=86_400)
    assert rescue_runs() == 0


def test_a_silent_worker_is_gone_after_a_lease(running: Run, worker: UUID) -> None:
    """Not before."""
    silence(worker, seconds=29)
    assert rescue_runs() == 0
    silence(worker, seconds=2)
    assert rescue_runs() == 1
    assert states(running) == ["queued", "admitted", "running", "retrying"]
    assert rescue_runs() == 0


def test_a_worker_that_has_left_is_gone_at_once(running: Run, worker: UUID) -> None:
    """It need not fall silent first."""
    leave(worker)
    assert states(running)[-1] == "retrying"
    attempt = running.attempts.get()
    assert (attempt.outcome, attempt.error_type) == ("worker lost", "WorkerLostError")
    assert attempt.error_message == "worker w1@here was lost"


def test_a_worker_without_a_row_is_gone(running: Run) -> None:
    """Somebody has deleted it."""
    Worker.objects.all().delete()
    assert rescue_runs() == 1
    assert states(running)[-1] == "retrying"


def test_the_second_attempt_comes_at_once(acme: Owner, worker: UUID) -> None:
    """The loss is seldom the run's fault; under a new token the old one is fenced off."""
    [run] = submitted(acme)
    old = started(worker, run)
    leave(worker)
    assert promote() == 1
    new = admitted(living_worker(), run)
    assert (new.token, new.attempt) == (2, 2)
    assert recorded(old, Kind.SUCCEEDED) is None


def test_a_run_whose_worker_was_lost_keeps_its_place(committed: None, acme: Owner) -> None:
    """It starts before what came after it, also if that happens twice."""
    first = submit("tests.add", x=0, y=1, owner=acme)
    time.sleep(0.5)  # a slow machine publishes late
    second = submit("tests.add", x=1, y=1, owner=acme)
    for _ in range(2):
        worker = living_worker()
        started(worker, first)
        leave(worker)
        age(first, "next_at", seconds=600)
        assert promote() == 1
    assert hinted() == [first.id, first.id, first.id, second.id]


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        ({"max_attempts": 1}, "failed"),
        ({"give_up_on": "WorkerLostError"}, "failed"),
        ({"retry_on": "OSError"}, "retrying"),
    ],
)
def test_after_its_last_attempt_it_is_a_dead_letter(
    acme: Owner, worker: UUID, policy: dict[str, Any], state: str
) -> None:
    """Never stuck, never started again and again.

    A task that must never start twice gives up on a lost worker; `retry_on` does not say it.
    """
    [run] = submitted(acme, **policy)
    started(worker, run)
    leave(worker)
    assert (states(run)[-1], run.moves[-1][2]) == (state, "worker lost")
    assert list(Run.objects.failed()) == [run] * (state == "failed")


@pytest.mark.parametrize("policy", [{"max_attempts": 1}, {"give_up_on": "WorkerLostError"}])
def test_a_last_attempt_that_has_not_started_is_not_spent(
    acme: Owner, policy: dict[str, Any]
) -> None:
    """However often its workers die before: no run fails that never began."""
    [run] = submitted(acme, **policy)
    for _ in range(3):
        taken_and_lost(run)
    assert (states(run)[-1], run.attempt_count) == ("queued", 0)
    assert {each.outcome for each in run.attempts.all()} == {"given back"}
    assert run.moves[-1][2] == "worker lost before the start"


def test_what_ends_its_workers_before_its_start_fails_in_the_end(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose admission ends a worker again and again is not given to all of them for ever."""
    monkeypatch.setattr(rescue, "UNSTARTED_MOST", 2)
    [run] = submitted(acme, max_attempts=1)
    for _ in range(3):
        taken_and_lost(run)
    assert (states(run)[-1], run.moves[-1][2]) == ("failed", "worker lost")


def test_a_last_attempt_after_one_that_started_is_spent(acme: Owner, worker: UUID) -> None:
    """It may have started, too, and its start is not recorded first."""
    [run] = submitted(acme, max_attempts=2)
    started(worker, run)
    leave(worker)
    promote()
    taken_and_lost(run)
    assert states(run)[-1] == "failed"


def test_what_was_being_cancelled_is_cancelled(running: Run, worker: UUID) -> None:
    """Its worker can no longer be told."""
    cancel_runs([running.id])
    leave(worker)
    assert states(running)[-2:] == ["cancelling", "cancelled"]


def test_what_never_reached_a_living_worker_is_taken_back(acme: Owner, worker: UUID) -> None:
    """The answer to its admission got lost; within a lease it may still be on its way."""
    runs = submitted(acme, 3)
    ask(worker, runs)
    age(runs[0], "admitted_at", seconds=31)
    age(runs[1], "admitted_at", seconds=31)
    assert rescue_runs(worker_id=worker, held=[runs[0].id]) == 1
    assert [states(run)[-1] for run in runs] == ["admitted", "queued", "admitted"]
    assert runs[1].attempt_count == 0
    attempt = runs[1].attempts.get()
    assert (attempt.outcome, runs[1].moves[-1][2]) == ("given back", "answer lost")


def test_what_a_living_worker_has_started_and_forgotten_was_lost(
    running: Run, worker: UUID
) -> None:
    """It may have done something: that attempt is spent."""
    age(running, "admitted_at", seconds=31)
    assert rescue_runs(worker_id=worker) == 1
    assert (states(running)[-1], running.attempt_count) == ("retrying", 1)


def test_an_end_that_celery_has_stored_is_the_end(
    committed: None, acme: Owner, worker: UUID
) -> None:
    """The worker died before it could say so: callers and errbacks have heard of it already.

    A stored outcome that cannot be read stops no other: its run is tried again.
    """
    done, failed, spoilt = (
        submit("tests.add", 1, 2, owner=acme, ignore_result=False) for _ in range(3)
    )
    for run in (done, failed, spoilt):
        started(worker, run)
        current_app.backend.mark_as_done(str(run.id), {"sum": 3})
    error = OSError("no \x00 route")
    current_app.backend.mark_as_failure(str(failed.id), error, traceback="line 1")
    TaskResult.objects.filter(task_id=str(spoilt.id)).update(result="{")
    leave(worker)
    assert [states(run)[-1] for run in (done, failed, spoilt)] == [
        *("succeeded", "failed", "retrying")
    ]
    assert done.moves[-1][2] == failed.moves[-1][2] == "stored outcome"
    assert (done.result_value, done.error_type) == ({"sum": 3}, "")
    assert (failed.error_type, failed.error_message) == ("OSError", "no \ufffd route")
    assert isinstance(AsyncResult(str(failed.id)).result, OSError)


def test_many_are_rescued_in_chunks(
    acme: Owner, worker: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until none is left."""
    monkeypatch.setattr(rescue, "CHUNK", 10)
    ask(worker, submitted(acme, 25))
    silence(worker, seconds=31)
    assert rescue_runs() == 25


def test_a_rescue_frees_what_waited_for_the_lost_run(
    committed: None, acme: Owner, worker: UUID
) -> None:
    """Its place under a cap and its lock are free."""
    Owner.objects.update(max_running=1)
    runs = submitted(acme, 2)
    ask(worker, runs)
    lose_hints()
    leave(worker)
    assert hinted() == [runs[1].id]


def test_a_row_that_its_worker_is_writing_is_left_alone(committed: None, acme: Owner) -> None:
    """A thawed worker may be faster than the rescue: then its word stands."""
    [run] = submitted(acme)
    worker = living_worker()
    started(worker, run)
    silence(worker, seconds=31)
    with held_by_somebody(run):
        assert rescue_runs() == 0
    assert rescue_runs() == 1
