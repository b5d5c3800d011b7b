"""jobs/runs/celery_outcomes.py: who asked for a run's end hears of it, also when no worker is
there.
"""

import pytest
from celery import states
from celery.result import AsyncResult
from django_celery_results.models import TaskResult

from fleet import Kind
from jobs import submit, submit_many
from jobs.catalog.registry import resolve
from jobs.models import Owner, Run
from jobs.runs.cancellation import cancel_runs
from jobs.runs.celery_outcomes import notify_missed
from jobs.system.heartbeat import leave
from jobs.system.promotion import expire
from tests.jobs.scenes import admitted, age, ask, called, hinted, living_worker, recorded

pytestmark = pytest.mark.usefixtures("committed")


def lose(run: Run) -> None:
    """Have the run's worker die with it, for the last time."""
    worker = living_worker()
    recorded(admitted(worker, run), Kind.STARTED)
    leave(worker)
    run.refresh_from_db()
    assert run.state == "failed"


def test_a_result_that_was_asked_for_comes(acme: Owner) -> None:
    """As a failure that names the lost worker, or as revoked."""
    lost, cancelled, expired = (
        submit("tests.add", 1, 2, owner=acme, ignore_result=False, max_attempts=1) for _ in range(3)
    )
    lose(lost)
    cancel_runs([cancelled.id])
    age(expired, "deadline_at", seconds=1)
    expire()
    assert AsyncResult(str(lost.id)).state == states.FAILURE
    assert "worker w1@here was lost" in str(AsyncResult(str(lost.id)).result)
    for run in (cancelled, expired):
        assert AsyncResult(str(run.id)).state == states.REVOKED


def test_an_errback_hears_of_a_lost_run(acme: Owner) -> None:
    """Though no result is kept."""
    errback = resolve("tests.total").s([1]).set(immutable=True)
    run = submit("tests.add", 1, 2, owner=acme, link_error=errback, max_attempts=1)
    lose(run)
    assert called() == [("tests.total", [[1]])]
    assert not TaskResult.objects.exists()


def test_a_chord_does_not_wait_for_a_cancelled_run(acme: Owner) -> None:
    """Its body's errback is called instead of the body."""
    body = resolve("tests.total").s()
    body.link_error(resolve("tests.total").si([7]))
    submission = submit_many("tests.add", [{"x": 1, "y": 1}] * 2, owner=acme, chord=body)
    cancel_runs([run.id for run in submission.runs.all()])
    assert called() == [("tests.total", [[7]])]


def test_trouble_with_the_backend_leaves_the_end_as_it_is(
    acme: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the other runs are told all the same."""
    broken, good = (submit("tests.add", 1, 2, owner=acme, ignore_result=False) for _ in range(2))
    # What Celery cannot use.
    Run.objects.filter(id=broken.id).update(options={"ignore_result": False, "meta": 7})
    assert len(cancel_runs([broken.id, good.id])) == 2
    assert f"could not tell Celery that run {broken.id} ended" in caplog.text
    assert AsyncResult(str(good.id)).state == states.REVOKED
    assert hinted() == []


def test_who_waits_for_a_run_that_ends_at_its_admission_is_told(
    acme: Owner, encrypted: None
) -> None:
    """Its deadline has passed, or it cannot be read: no child will ever tell."""
    late, broken = (submit("tests.add", 1, 2, owner=acme, ignore_result=False) for _ in range(2))
    age(late, "deadline_at", seconds=1)
    Run.objects.filter(id=broken.id).update(payload=bytes(late.payload))
    ask(living_worker(), [late, broken])
    assert AsyncResult(str(late.id)).state == states.REVOKED
    assert AsyncResult(str(broken.id)).state == states.FAILURE
    assert "is not of this row" in str(AsyncResult(str(broken.id)).result)


def test_the_sweep_tells_of_ends_that_were_left_untold(acme: Owner) -> None:
    """Whoever moved the run died after the commit; its own word is waited for within a lease."""
    runs = [
        submit("tests.add", 1, 2, owner=acme, ignore_result=is_ignored)
        for is_ignored in (False, False, False, True)
    ]
    for run in runs:
        run.cancel()
    TaskResult.objects.exclude(task_id=str(runs[0].id)).delete()
    for run, seconds in zip(runs, (60, 60, 7_200, 60), strict=True):
        age(run, "ended_at", seconds=seconds)
    [young] = [submit("tests.add", 1, 2, owner=acme, ignore_result=False)]
    young.cancel()
    TaskResult.objects.filter(task_id=str(young.id)).delete()
    assert notify_missed() == 1
    assert [AsyncResult(str(run.id)).state for run in [*runs, young]] == [
        states.REVOKED,
        states.REVOKED,
        *[states.PENDING] * 3,
    ]
    assert notify_missed() == 0
