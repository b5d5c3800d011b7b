"""jobs/runs/cancellation.py: what waits ends at once and for good, what runs is stopped."""

import pytest
import redis
from django.db import transaction

from fleet import Kind, Refusal
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.runs.cancellation import cancel_runs
from jobs.runs.recording import move
from tests.jobs.scenes import (
    admitted,
    ask,
    begun,
    behind,
    hinted,
    living_worker,
    recorded,
    states,
    submitted,
)


def test_what_waits_is_cancelled_and_never_starts(acme: Owner) -> None:
    """In every state in which no worker has it; its hints find nothing to do.

    A second cancel, and one of a run that has ended, change nothing.
    """
    worker = living_worker()
    [queued], [scheduled], [held], [retrying], [done] = (
        submitted(acme, countdown=seconds) for seconds in (0, 60, 60, 0, 0)
    )
    move([held.id], to=State.HELD)
    at = admitted(worker, retrying)
    recorded(at, Kind.STARTED)
    recorded(at, Kind.RETRYING, delay=0.0)
    recorded(admitted(worker, done), Kind.SUCCEEDED)
    runs = [queued, scheduled, held, retrying]
    ids = [run.id for run in (*runs, done)]
    assert set(cancel_runs(ids)) == {run.id for run in runs}
    for run in runs:
        assert states(run)[-1] == "cancelled"
    assert ask(worker, runs) == [Refusal.GONE] * 4
    before = list(Run.objects.order_by("id").values())
    assert cancel_runs(ids) == [] and not queued.cancel()
    assert list(Run.objects.order_by("id").values()) == before


def test_what_a_worker_holds_is_told_to_stop(acme: Owner) -> None:
    """Its own word then ends it."""
    run, at = begun(acme)
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


@pytest.mark.parametrize("reason", ["x" * 501, "nul \x00", "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused(acme: Owner, reason: str) -> None:
    """By a cancel and by a retry alike; nothing moves."""
    [run] = submitted(acme)
    for verb in (run.cancel, run.retry):
        with pytest.raises(OptionError, match="option reason: "):
            verb(reason=reason)
    assert states(run) == ["queued"]
