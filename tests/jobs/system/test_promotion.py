"""jobs/system/promotion.py: due runs are queued; those that miss their start deadline expire."""

import pytest

from fleet import Kind
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.runs.recording import move
from jobs.system import promotion
from jobs.system.promotion import expire, promote
from tests.jobs.scenes import (
    admitted,
    age,
    begun,
    held_by_somebody,
    living_worker,
    recorded,
    states,
    submitted,
)


def retrying(owner: Owner) -> Run:
    """Return a run that waits for its second attempt."""
    run, at = begun(owner)
    recorded(at, Kind.RETRYING, delay=60.0)
    return run


def held(owner: Owner) -> Run:
    """Return a run that something keeps, until a time."""
    [run] = submitted(owner, countdown=60)
    move([run.id], to=State.HELD)
    return run


def scheduled(owner: Owner) -> Run:
    [run] = submitted(owner, countdown=60)
    return run


@pytest.mark.parametrize("make", [scheduled, held, retrying])
def test_what_is_due_is_queued(acme: Owner, make: object) -> None:
    """Scheduled, held or waiting for its next attempt: not before its time, and once."""
    run = make(acme)  # type: ignore[operator]
    assert promote() == 0
    age(run, "next_at", seconds=0)
    assert promote() == 1
    assert states(run)[-1] == "queued"
    assert run.moves[-1][2] == "due"
    assert promote() == 0


def test_what_has_not_started_by_its_deadline_expires(acme: Owner) -> None:
    """In every state in which nobody works on it; and its end has a reason."""
    [queued] = submitted(acme)
    runs = [scheduled(acme), held(acme), queued]
    for run in runs:
        age(run, "deadline_at", seconds=0)
    assert expire() == 3
    for run in runs:
        assert states(run)[-1] == "expired"
        assert run.moves[-1][2] == "deadline passed"
    assert expire() == 0


def test_what_has_been_taken_in_time_does_not_expire(acme: Owner) -> None:
    """The deadline is for the start: a worker holds it, or it waits for its next attempt."""
    [held] = submitted(acme)
    admitted(living_worker(), held)
    again = retrying(acme)
    for run in (held, again):
        age(run, "deadline_at", seconds=1)
    assert expire() == 0
    age(again, "next_at", seconds=0)
    assert (promote(), expire()) == (1, 0)
    assert states(held)[-1] == "admitted"
    assert admitted(living_worker(), again).attempt == 2


def test_a_long_backlog_is_moved_in_chunks(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a transaction of its own, until nothing is due."""
    monkeypatch.setattr(promotion, "CHUNK", 10)
    submitted(acme, 25, countdown=60)
    Run.objects.update(next_at="2026-01-01T00:00Z")
    assert promote() == 25


def test_a_row_that_somebody_holds_is_left_for_the_next_time(committed: None, acme: Owner) -> None:
    """Promotion waits for nobody."""
    runs = submitted(acme, 2, countdown=60)
    Run.objects.update(next_at="2026-01-01T00:00Z")
    with held_by_somebody(runs[0]):
        assert promote() == 1
    assert promote() == 1
