"""jobs/runs/manual_retry.py: an operator's retry gives an ended run a fresh set of attempts."""

import pytest
from celery.result import AsyncResult

from fleet import Kind
from jobs import submit
from jobs.core.errors import StateConflict
from jobs.core.states import ENDED, State
from jobs.models import AuditEntry, Owner, Run
from jobs.runs import bulk
from jobs.runs.recording import move
from jobs.system import promotion
from tests.jobs.scenes import (
    admitted,
    age,
    begun,
    hinted,
    living_worker,
    recorded,
    states,
    submitted,
)


def test_attempts_are_fresh_and_tokens_count_on(committed: None, acme: Owner) -> None:
    """So what an earlier attempt may still report stays fenced off; it has a hint at once."""
    run, at = begun(acme, max_attempts=1)
    recorded(at, Kind.FAILED, error_type="OSError")
    before = len(hinted())
    run.retry(reason="cable is back")
    assert states(run) == ["queued", "admitted", "running", "failed", "queued"]
    assert run.moves[-1][2] == "cable is back"
    assert hinted()[before:] == [run.id]
    again = admitted(living_worker(), run)
    assert (again.token, again.attempt) == (2, 1)
    recorded(again, Kind.SUCCEEDED)
    assert [(a.token, a.number) for a in run.attempts] == [(1, 1), (2, 2)]


def test_attempts_number_on_through_every_retry(committed: None, acme: Owner) -> None:
    """The stored numbers count all; what bounds a set, and Celery's retries, count from 1 again."""
    [run] = submitted(acme, max_attempts=2)
    worker = living_worker()
    for _ in range(2):
        for attempt in (1, 2):
            at = admitted(worker, run)
            assert at.attempt == attempt
            recorded(at, Kind.STARTED)
            again = Kind.RETRYING if attempt == 1 else Kind.FAILED
            recorded(at, again, error_type="OSError", delay=0.0)
            promotion.promote()
        run.retry()
    recorded(admitted(worker, run), Kind.GIVEN_BACK)
    recorded(admitted(worker, run), Kind.SUCCEEDED)
    assert [a.number for a in run.attempts] == [1, 2, 3, 4, 5, 5]
    run.refresh_from_db()
    assert (run.attempt_count, run.attempt_number, run.last_attempt_number) == (1, 5, 6)


def test_the_stored_result_of_the_earlier_end_is_removed(committed: None, acme: Owner) -> None:
    """Else a worker that is lost later would pass that one off as the new attempt's."""
    run = submit("tests.add", 1, 2, owner=acme, ignore_result=False)
    run.cancel()
    assert AsyncResult(str(run.id)).state == "REVOKED"
    run.retry()
    assert AsyncResult(str(run.id)).state == "PENDING"


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.EXPIRED])
def test_a_passed_deadline_is_taken_away(acme: Owner, state: State) -> None:
    """Else the run would expire before anybody could start it."""
    [run] = submitted(acme, deadline_seconds=60)
    if state is State.FAILED:
        recorded(admitted(living_worker(), run), Kind.FAILED)
    else:
        move([run.id], to=state)
    age(run, "deadline_at", seconds=1)
    run.retry()
    assert run.deadline_at is None
    admitted(living_worker(), run)


@pytest.mark.parametrize("state", sorted(set(State) - (ENDED - {State.SUCCEEDED})))
def test_what_may_not_move_is_a_conflict(acme: Owner, state: State) -> None:
    """What has not ended, and what has succeeded; the error says which."""
    [run] = submitted(acme)
    Run.objects.filter(id=run.id).update(state=state)
    with pytest.raises(StateConflict, match=f"is {state} and cannot be retried"):
        run.retry()


def test_what_failed_of_a_submission_is_retried(
    committed: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks, as far as the time allows; a repetition does the rest. All, however many."""
    monkeypatch.setattr(bulk, "CHUNK", 2)
    monkeypatch.setattr(bulk, "MOST", 3)
    runs = submitted(acme, 5, max_attempts=1)
    Run.objects.filter(id__in=[run.id for run in runs[1:]]).update(state=State.FAILED)
    submission = runs[0].submission
    assert submission is not None
    assert bulk.reopen_failed(submission, reason="cable is back") == (4, 0, "")
    assert not Run.objects.exclude(state=State.QUEUED).exists()
    entry = AuditEntry.objects.get(action="retry failed runs")
    assert (entry.reason, entry.details) == ("cable is back", {"matched": 4})
    Run.objects.filter(id__in=[run.id for run in runs[:3]]).update(state=State.FAILED)
    monkeypatch.setattr(bulk, "BUDGET_SECONDS", -1.0)
    assert bulk.reopen_failed(submission) == (2, 1, "")
