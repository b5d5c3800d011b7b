"""jobs/recurring/trigger.py: due times of jobs become runs and hints, each once."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs import job as offered_job
from jobs.core.ids import scheduled_id
from jobs.core.states import State
from jobs.models import Outbox, Owner, Run, Submission, Target
from jobs.recurring.trigger import make_runs, send_hints
from jobs.runs.submission import run_job
from jobs.schedules import slot_of
from tests.jobs.recurring.scenes import at, hinted_of, recurring, runs_of
from tests.jobs.scenes import known, messages
from tests.jobs.without_history import written_count

pytestmark = pytest.mark.usefixtures("committed")

# What every run has of its own: ids and times.
OWN = {
    "id",
    "created_at",
    "queued_at",
    "hint_check_at",
    "due_at",
    "next_at",
    "history",
    "deadline_at",
}


def trigger(
    due: Sequence[tuple[int, datetime]], *, salt: str = "", submission: int | None = None
) -> int:
    """Make the runs of due times, and the hints of those without; return how many."""
    pairs = [(job_id, slot_of(due_at)) for job_id, due_at in due]
    return make_runs(pairs, salt=salt, submission=submission) + send_hints(pairs)


@offered_job(
    name="tests.with_terms",
    priority=2,
    max_attempts=7,
    backoff_seconds=3,
    retry_on=OSError,
    time_limit_seconds=20,
    deadline_seconds=600,
)
def with_terms(x: int, y: int) -> int:
    """A task that declares all that a job may leave open."""
    return x + y


def stored(run: Run) -> dict[str, Any]:
    """Return the columns of a run that a submit decides about."""
    [row] = Run.objects.filter(pk=run.pk).values()
    return {name: value for name, value in row.items() if name not in OWN}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"task": "tests.with_terms"},
        {"task": "tests.with_terms", "max_attempts": 4, "priority": 1, "retry_on": ["ValueError"]},
        {"priority": 9, "labels": {"site": "north"}, "lock_key": "disk", "payload_key": 0},
        {"backoff_seconds": 1.5, "retry_on": ["ValueError", "OSError"], "give_up_on": ["KeyError"]},
        {"soft_time_limit_seconds": 5, "time_limit_seconds": 8.25, "backoff_cap_seconds": 60},
        {"task": "fairshift.management_command"},
    ],
)
def test_a_run_is_what_a_submit_would_have_stored(acme: Owner, fields: dict[str, Any]) -> None:
    """Column by column the row that `job.run_now()` makes, but for ids and times."""
    target = Target.objects.create(owner=acme, name="pump")
    job = recurring(acme, target=target, **fields)
    assert trigger([(job.id, at(3))]) == 1
    [run] = Run.objects.filter(job=job)
    by_hand = run_job(job)
    assert stored(run) == stored(by_hand)
    if by_hand.deadline_at:
        assert run.deadline_at - run.due_at == by_hand.deadline_at - by_hand.created_at
    else:
        assert run.deadline_at is None
    assert run.id == scheduled_id(job.id, at(3))
    assert (run.due_at, run.next_at) == (at(3), at(3))
    assert [(state, cause) for state, _, cause in run.moves] == [(State.QUEUED, "")]
    assert run.moves[0][1] == run.queued_at == run.created_at
    assert run.hint_check_at - run.queued_at == timedelta(seconds=30)
    assert hinted_of(job) == 2
    assert Outbox.objects.count() == 0


def test_a_deadline_counts_from_the_due_time_and_for_a_backfill_from_now(acme: Owner) -> None:
    """A due time that is asked for later on is not too late for that."""
    job = recurring(acme, deadline_seconds=90)
    asked = Submission.objects.create(owner=acme, task=job.task, queue="jobs", run_count=1)
    trigger([(job.id, at(0))])
    trigger([(job.id, at(0))], salt="backfill:1", submission=asked.id)
    due, filled = Run.objects.order_by("submission_id", "created_at").reverse()
    assert due.submission_id is None
    assert due.deadline_at == at(0, seconds=90)
    assert filled.submission_id == asked.id
    assert filled.id == scheduled_id(job.id, at(0), salt="backfill:1")
    assert filled.deadline_at == filled.created_at + timedelta(seconds=90)


def test_triggering_twice_makes_one(acme: Owner, northwind: Owner) -> None:
    """With rows by their ids, without by what the broker knows; only what is new counts."""
    kept = [recurring(owner) for owner in (acme, northwind)]
    unkept = recurring(acme, history_policy="none", lock_key="disk")
    pairs = [(job.id, at(minute)) for job in (*kept, unkept) for minute in (0, 1)]
    assert trigger(pairs) == 6
    before = known()
    assert trigger(pairs) == 2
    assert known() == before
    assert len(before) == 6
    assert Run.objects.count() == 4
    assert {tuple(runs_of(job)) for job in kept} == {(at(0), at(1))}


def test_without_history_there_is_a_hint_and_not_one_row(acme: Owner) -> None:
    """It names the job, the due time's id, the lock; the database has nothing more to write."""
    job = recurring(acme, history_policy="none", lock_key="disk", priority=8)
    before = written_count()
    assert trigger([(job.id, at(0, seconds=1.5))]) == 1
    assert written_count() == before
    [message] = messages()
    run_id = str(scheduled_id(job.id, at(0, seconds=1.5)))
    assert message["headers"]["id"] == run_id
    assert message["headers"]["fairshift"] == {
        "owner": "acme",
        "submission": None,
        "run": run_id,
        "token": 1,
        "job": job.id,
        "lock": "disk",
    }
    assert message["properties"]["priority"] == 1


def test_of_jobs_that_are_gone_nothing_is_made(acme: Owner) -> None:
    """Deleted between the look and the trigger: others go on."""
    gone, there = recurring(acme), recurring(acme)
    pair = (gone.id, at(0))
    gone.delete()
    assert trigger([pair, (there.id, at(0))]) == 1
    assert trigger([]) == 0
