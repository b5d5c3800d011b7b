"""jobs/runs/cancellation.py: what waits ends at once and for good, what runs is stopped."""

import math

import pytest
import redis
from django.contrib.auth.models import User
from django.db import transaction

from fleet import Kind, Refusal
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.models import AuditEntry, Owner, Run, Submission
from jobs.runs import cancellation, dispatch
from jobs.runs.cancellation import Cancelled, cancel_runs
from jobs.runs.recording import move
from tests.jobs.scenes import (
    admitted,
    ask,
    behind,
    hinted,
    living_worker,
    recorded,
    states,
    submitted,
)


def test_what_waits_is_cancelled_and_never_starts(acme: Owner) -> None:
    """In every state in which nobody works on it; its hints find nothing to do."""
    worker = living_worker()
    [queued], [scheduled], [held], [retrying] = (
        submitted(acme, countdown=seconds) for seconds in (0, 60, 60, 0)
    )
    move([held.id], to=State.HELD)
    at = admitted(worker, retrying)
    recorded(at, Kind.STARTED)
    recorded(at, Kind.RETRYING, delay=0.0)
    runs = [queued, scheduled, held, retrying]
    assert set(cancel_runs([run.id for run in runs])) == {run.id for run in runs}
    for run in runs:
        assert states(run)[-1] == "cancelled"
    assert ask(worker, runs) == [Refusal.GONE] * 4


def test_what_a_worker_holds_is_told_to_stop(acme: Owner) -> None:
    """Its own word then ends it."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    recorded(at, Kind.STARTED)
    assert run.cancel(reason="wrong version")
    assert states(run) == ["queued", "admitted", "running", "cancelling"]
    assert run.moves[-1][2] == "wrong version"
    assert recorded(at, Kind.CANCELLED) == "cancelled"


def test_hints_of_what_is_cancelled_are_taken_back(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """They would spend their owner's turns and rate; what is held or left is not touched."""
    runs = submitted(acme, 4)
    admitted(living_worker(), runs[3])
    cancel_runs([run.id for run in runs[:2]])
    assert hinted() == [runs[2].id, runs[3].id]
    with transaction.atomic():
        cancel_runs([runs[2].id])
        transaction.set_rollback(True)
    assert hinted() == [runs[2].id, runs[3].id]


def test_a_cancel_needs_no_broker(
    committed: None, broker: redis.Redis, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it a worker finds out: the row decides."""
    [run] = submitted(acme)
    monkeypatch.setattr(dispatch.broker(), "_resume_at", math.inf)
    assert run.cancel()
    assert states(run)[-1] == "cancelled" and hinted() == [run.id]


def test_cancelling_twice_is_harmless(acme: Owner) -> None:
    """And so is cancelling what has ended."""
    waiting, running, done = submitted(acme, 3)
    worker = living_worker()
    admitted(worker, running)
    recorded(admitted(worker, done), Kind.SUCCEEDED)
    assert len(cancel_runs([waiting.id, running.id, done.id])) == 2
    before = list(Run.objects.order_by("id").values())
    assert cancel_runs([waiting.id, running.id, done.id]) == []
    assert not waiting.cancel()
    assert list(Run.objects.order_by("id").values()) == before


@pytest.mark.parametrize(("kind", "has_started"), [(Kind.GIVEN_BACK, False), (Kind.RETRYING, True)])
def test_a_run_that_comes_back_meanwhile_is_not_missed(
    committed: None, acme: Owner, kind: Kind, has_started: bool
) -> None:
    """Between the look at what waits and the look at what runs, it may change sides."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    if has_started:
        recorded(at, Kind.STARTED)
    with behind(lambda: cancel_runs([run.id])) as (begin, outcomes):
        recorded(at, kind, delay=0.0)
        begin()
    assert outcomes == [[run.id]]
    assert states(run)[-1] == "cancelled"


def test_a_run_that_is_admitted_meanwhile_is_told(committed: None, acme: Owner) -> None:
    """The admission came first, so its worker has to hear of it."""
    [run] = submitted(acme)
    worker = living_worker()
    with behind(lambda: cancel_runs([run.id])) as (begin, outcomes):
        admitted(worker, run)
        begin()
    assert outcomes == [[run.id]]
    assert states(run)[-1] == "cancelling"


def test_a_submission_is_cancelled_with_what_is_left_of_it(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunk by chunk; what has ended stays, and other submissions go on."""
    monkeypatch.setattr(cancellation, "CHUNK", 10)
    runs, others = submitted(acme, 25), submitted(acme, 2)
    recorded(admitted(living_worker(), runs[0]), Kind.SUCCEEDED)
    submission = Submission.objects.get(pk=runs[0].submission_id)
    assert submission.cancel() == Cancelled(cancelled=24, stopping=0)
    assert submission.progress.counts == {State.SUCCEEDED: 1, State.CANCELLED: 24}
    assert submission.progress.is_done
    assert [states(run) for run in others] == [["queued"]] * 2


def test_what_is_told_is_not_counted_as_cancelled(acme: Owner) -> None:
    """A worker holds it, and may still end it otherwise; a second cancel moves nothing."""
    runs = submitted(acme, 5)
    worker = living_worker()
    at = [admitted(worker, run) for run in runs[:2]]
    recorded(at[0], Kind.STARTED)
    submission = Submission.objects.get(pk=runs[0].submission_id)
    moved = submission.cancel()
    assert (moved.cancelled, moved.stopping, bool(moved)) == (3, 2, True)
    again = submission.cancel()
    assert (again.cancelled, again.stopping, bool(again)) == (0, 0, False)
    assert recorded(at[0], Kind.SUCCEEDED) == "succeeded"


@pytest.mark.parametrize("reason", ["x" * 501, "nul \x00", "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused(acme: Owner, reason: str) -> None:
    """By a cancel and by a retry alike; nothing moves."""
    [run] = submitted(acme)
    for verb in (run.cancel, run.retry):
        with pytest.raises(OptionError, match="option reason: "):
            verb(reason=reason)
    assert states(run) == ["queued"]


def test_who_cancelled_and_why_is_in_the_audit(acme: Owner) -> None:
    """For each run that moved, or once for a submission."""
    actor = User.objects.create(username="ada")
    one, other = submitted(acme, 2)
    one.cancel()
    cancel_runs([one.id, other.id], actor=actor, reason="wrong version")
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.object_id) == ("ada", "cancel", str(other.id))
    assert (entry.owner, entry.reason) == (acme, "wrong version")
    [more] = submitted(acme)
    assert more.submission is not None
    more.submission.cancel(actor=actor, reason="again")
    newest = AuditEntry.objects.latest("id")
    assert (newest.object_type, newest.details) == ("submission", {"cancelled": 1, "stopping": 0})
