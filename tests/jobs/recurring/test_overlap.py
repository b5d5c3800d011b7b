"""jobs/recurring/overlap.py: what becomes of a due time while an earlier run of its job is open."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import pytest
import redis
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from fleet import Kind, Refusal
from jobs.core.ids import scheduled_id
from jobs.models import Job, Missed, Owner, Run
from jobs.recurring.overlap import OpenRuns, apply_overlap, runs_to_start
from jobs.recurring.trigger import make_runs
from jobs.schedules import slot_of
from tests.jobs.recurring.scenes import at, recurring, runs_of
from tests.jobs.scenes import admitted, ask, at_once, behind, living_worker, recorded, states


def triggered(*due: tuple[Job, int]) -> int:
    """Trigger due times, minutes after noon, as a tick does; return how many got a run."""
    with transaction.atomic():
        return make_runs(
            apply_overlap([(job.pk, slot_of(at(minute))) for job, minute in due]).chosen
        )


def missed(job: Job) -> list[int]:
    rows = Missed.objects.filter(job=job, reason="overlap", count=1).order_by("first_at")
    return [round((row.first_at - at(0)) / timedelta(minutes=1)) for row in rows]


def run(job: Job, minute: int) -> Run:
    return Run.objects.select_related("owner").get(id=scheduled_id(job.pk, at(minute)))


def made(job: Job) -> list[int]:
    return [round((due - at(0)) / timedelta(minutes=1)) for due in runs_of(job)]


def test_skip_while_a_run_is_open(acme: Owner) -> None:
    """Whether it waits, runs, or waits for its next attempt; then it is due again."""
    job, worker = recurring(acme, overlap="skip"), living_worker()
    triggered((job, 1))
    triggered((job, 2))
    holding = admitted(worker, run(job, 1))
    triggered((job, 3))
    recorded(holding, Kind.STARTED)
    recorded(holding, Kind.RETRYING, delay=60.0)
    triggered((job, 4))
    run(job, 1).cancel()
    triggered((job, 5))
    assert made(job) == [1, 5] and missed(job) == [2, 3, 4]


def test_one_waits_for_the_other(acme: Owner) -> None:
    """And no second one; the lock key of the job keeps them apart."""
    job, worker = recurring(acme, overlap="queue"), living_worker()
    triggered((job, 1))
    triggered((job, 2))
    holding = admitted(worker, run(job, 1))
    triggered((job, 3))
    triggered((job, 4))
    assert made(job) == [1, 3] and missed(job) == [2, 4]
    assert ask(worker, [run(job, 3)]) == [Refusal.WAITS]
    recorded(holding, Kind.STARTED)
    recorded(holding, Kind.SUCCEEDED)
    assert run(job, 3).lock_key == f"acme:job:{job.pk}"
    admitted(worker, run(job, 3))


def test_the_run_before_is_cancelled(acme: Owner) -> None:
    """One that waits ends; one that a worker holds is told, and the new one waits for its end."""
    job, worker = recurring(acme, overlap="cancel"), living_worker()
    triggered((job, 1))
    triggered((job, 2))
    assert states(run(job, 1)) == ["queued", "cancelled"]
    assert run(job, 1).moves[-1][2] == "the next run was due"
    holding = admitted(worker, run(job, 2))
    recorded(holding, Kind.STARTED)
    triggered((job, 3))
    assert states(run(job, 2))[-1] == "cancelling"
    assert ask(worker, [run(job, 3)]) == [Refusal.WAITS]
    assert made(job) == [1, 2, 3] and missed(job) == []


def test_due_times_that_come_together_follow_each_other(acme: Owner) -> None:
    """As after an outage: the first for skip and queue, the last for cancel."""
    jobs = [recurring(acme, overlap=policy) for policy in ("skip", "queue", "cancel")]
    triggered(*((job, minute) for minute in (3, 1, 2) for job in jobs))
    assert [made(job) for job in jobs] == [[1], [1], [3]]
    assert [missed(job) for job in jobs] == [[2, 3], [2, 3], [1, 2]]


def test_again_changes_nothing(acme: Owner) -> None:
    """A tick that is repeated, at once or when all is over, finds each due time accounted for."""
    jobs = [recurring(acme, overlap=policy) for policy in ("skip", "queue", "cancel")]
    due = [(job, minute) for job in jobs for minute in (1, 2)]
    triggered(*due)
    before = [(made(job), missed(job)) for job in jobs]
    assert triggered(*due) == 0
    for each in Run.objects.filter(job__in=jobs).select_related("owner"):
        each.cancel()
    assert triggered(*due) == 0
    assert [(made(job), missed(job)) for job in jobs] == before


def test_a_backfill_does_not_keep_the_schedule_from_its_times(acme: Owner) -> None:
    """Its runs are kept apart by the lock alone: they neither skip nor cancel anything."""
    job = recurring(acme, overlap="cancel")
    submission = acme.submissions.create(task=job.task, queue="jobs", run_count=1)
    make_runs([(job.pk, slot_of(at(-60)))], salt="backfill:1", submission=submission.pk)
    triggered((job, 1))
    [old, new] = Run.objects.filter(job=job).order_by("due_at")
    assert (old.state, new.state) == ("queued", "queued")
    assert old.lock_key == new.lock_key == f"acme:job:{job.pk}"


def test_two_ticks_at_once_do_not_both_pass(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """The second waits for the job's row until the first has committed, and then sees its run."""
    jobs = [recurring(acme, overlap=policy) for policy in ("skip", "queue")]
    with behind(lambda: triggered(*((job, 2) for job in jobs))) as (begin, outcomes):
        triggered(*((job, 1) for job in jobs))
        begin()
    assert outcomes == [0]
    assert [(made(job), missed(job)) for job in jobs] == [([1], [2])] * 2


def test_many_ticks_at_once_leave_one_run(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """In whatever order they come, and without a deadlock; each due time is accounted for."""
    jobs = [recurring(acme, overlap="skip") for _ in range(20)]
    outcomes = at_once(
        *(lambda minute=minute: triggered(*((job, minute) for job in jobs)) for minute in range(4))
    )
    assert sum(outcomes) == 20, outcomes  # type: ignore[arg-type]
    for job in jobs:
        assert len(made(job)) == 1 and sorted([*made(job), *missed(job)]) == [0, 1, 2, 3]


@pytest.mark.parametrize("policy", ["skip", "queue", "cancel"])
@given(
    due=st.lists(st.integers(0, 50), unique=True).map(sorted),
    waiting=st.integers(0, 2),
    active=st.integers(0, 2),
)
def test_how_many_are_chosen(policy: str, due: Sequence[int], waiting: int, active: int) -> None:
    """At most one of what is due; none where a run stands in its way."""
    open_runs = OpenRuns([uuid4() for _ in range(waiting)], [uuid4() for _ in range(active)])
    chosen = list(runs_to_start(policy, due, open_runs))
    blocked = {"skip": waiting + active > 0, "queue": waiting > 0, "cancel": False}[policy]
    assert len(chosen) == (0 if blocked or not due else 1) and set(chosen) <= set(due)
