"""jobs/recurring/late_commits.py: jobs that were written while their ticks passed are triggered,
once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import connection, connections, transaction

from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Cursor, Job, Missed, Owner, Tick
from jobs.recurring.late_commits import trigger_late_commits
from jobs.recurring.tick import run_tick
from jobs.schedules import moment_of, slot_of
from tests.jobs.recurring.scenes import recurring, runs_of
from tests.jobs.scenes import known, open_transaction

pytestmark = pytest.mark.usefixtures("committed", "no_ticks")

# A span before now that lies in one minute, so that a job of each minute is due in it once.
SPAN = 10


@pytest.fixture
def first_slot() -> int:
    """The first of some slots that have just passed."""
    end = slot_of(now())
    return end - SPAN


def pass_by(first_slot: int, *, slots: int = SPAN) -> Tick:
    """Hand out and trigger some slots."""
    end = first_slot + slots
    made = Tick.objects.create(first_slot=first_slot, end_slot=end, sent_at=now())
    Cursor.objects.update(slot=end)
    run_tick(made.id)
    return made


def due_at(slot: int, **fields: Any) -> dict[str, Any]:
    """Return the fields of a job that is due in this slot of every minute, and was before it."""
    shard = slot % 120
    return {"shard": shard, "effective_from": moment_of(slot - 5), **fields}


@contextmanager
def uncommitted(owner: Owner, **fields: Any) -> Iterator[list[Job]]:
    """Make a job on another connection, and commit it when the block ends."""
    other = connection.copy()
    mine = connections["default"]
    made: list[Job] = []
    try:
        other.set_autocommit(False)
        connections["default"] = other
        made.append(recurring(owner, "in-flight", **fields))
        connections["default"] = mine
        yield made
        other.commit()
    finally:
        connections["default"] = mine
        other.close()


@pytest.mark.parametrize("history", ["full", "none"])
def test_what_its_tick_could_not_see_is_triggered(
    acme: Owner, first_slot: int, history: str
) -> None:
    """A job whose transaction ends after its due time: once, in the round after the commit."""
    with uncommitted(acme, **due_at(first_slot + 3, history_policy=history)) as [job]:
        pass_by(first_slot)
        assert trigger_late_commits() == 0
    assert known() == []
    assert trigger_late_commits() == 1
    assert trigger_late_commits() == 0
    assert len(known()) == 1
    if history == "full":
        assert runs_of(job) == [moment_of(first_slot + 3)]


@pytest.mark.parametrize(("misfire", "runs"), [("once", [2]), ("skip", []), ("all", [0, 1, 2])])
def test_what_was_caught_up_with_before_its_commit_is_judged_as_missed(
    acme: Owner, misfire: str, runs: list[int]
) -> None:
    """By the job's policy, all its due times together: each has its run or is in one record."""
    first = slot_of(now()) // 120 * 120 - 4 * 120
    moments = [moment_of(first + minute * 120 + 3) for minute in range(3)]
    with uncommitted(acme, **due_at(first + 3, misfire=misfire)) as [job]:
        span = {"first_slot": first, "end_slot": first + 360, "kind": Tick.Kind.CATCH_UP}
        run_tick(Tick.objects.create(**span, sent_at=now()).pk)
        Cursor.objects.update(slot=slot_of(now()))
        assert trigger_late_commits() == 0
    assert trigger_late_commits() == 0
    [left] = Tick.objects.filter(kind=Tick.Kind.HELD)
    assert run_tick(left.pk) == len(runs)
    assert runs_of(job) == [moments[index] for index in runs]
    assert sum(Missed.objects.values_list("count", flat=True)) == 3 - len(runs)
    assert trigger_late_commits() == 0


@pytest.mark.parametrize(
    "change", [{}, {"name": "new"}, {"priority": 9}, {"task": "tests.total"}, {"max_attempts": 5}]
)
def test_what_its_tick_saw_is_not_triggered_again(
    acme: Owner, broker: redis.Redis, first_slot: int, change: dict[str, Any]
) -> None:
    """A message without a row may have been run since. A change of what the job does is no new
    schedule.
    """
    job = recurring(acme, **due_at(first_slot + 3, history_policy="none"))
    if change:
        trigger_late_commits()
    pass_by(first_slot)
    broker.flushdb()  # the messages have been run
    Job.objects.filter(pk=job.pk).update(**change)
    assert trigger_late_commits() == 0
    assert known() == []


def test_a_new_schedule_counts_from_its_beginning(acme: Owner, first_slot: int) -> None:
    """Due times before it are of the old one, and are left alone."""
    job = recurring(acme, **due_at(first_slot + 20))
    pass_by(first_slot)
    Job.objects.filter(pk=job.pk).update(shard=(first_slot + 3) % 120)
    assert trigger_late_commits() == 0
    assert runs_of(job) == []


def test_a_job_that_is_on_again_counts_from_then(acme: Owner, first_slot: int) -> None:
    """Switched on, or its pause ended, in a transaction that its tick could not see."""
    off = recurring(acme, **due_at(first_slot + 3, enabled=False))
    until = now() + timedelta(days=1)
    paused = recurring(acme, **due_at(first_slot + 3, paused_until=until))
    early = moment_of(first_slot + 2)
    with transaction.atomic():
        Job.objects.filter(pk=off.pk).update(enabled=True)
        Job.objects.filter(pk=paused.pk).update(paused_until=None)
        # As if it had been that long ago.
        Job.objects.filter(pk__in=[off.pk, paused.pk]).update(effective_from=early)
        at_tick = slot_of(now())
    pass_by(first_slot)
    # The ticks were read, and the jobs last, before anything of this scene was committed.
    sql.query("UPDATE jobs_tick SET seen = '3:3:'")
    sql.query("UPDATE jobs_cursor SET again_seen = '3:3:'")
    Cursor.objects.update(slot=at_tick)
    trigger_late_commits()
    assert runs_of(off) == runs_of(paused) == [moment_of(first_slot + 3)]


def test_a_tick_that_is_at_work_is_not_relied_on(acme: Owner, first_slot: int) -> None:
    """It may have read already."""
    with uncommitted(acme, **due_at(first_slot + 3)) as [job]:
        made = pass_by(first_slot)
    Tick.objects.filter(pk=made.pk).update(done_at=None)
    assert trigger_late_commits() == 1
    assert run_tick(made.id) == 0
    assert runs_of(job) == [moment_of(first_slot + 3)]


def test_a_long_transaction_of_somebody_else_hides_nothing(
    acme: Owner, broker: redis.Redis, first_slot: int
) -> None:
    """What commits meanwhile is found, and found once."""
    with open_transaction("SELECT pg_current_xact_id()"):
        trigger_late_commits()
        with uncommitted(acme, **due_at(first_slot + 3, history_policy="none")):
            pass_by(first_slot)
        assert trigger_late_commits() == 1
        broker.flushdb()  # the messages have been run
        assert trigger_late_commits() == 0


def test_a_restored_database_begins_anew(acme: Owner, first_slot: int) -> None:
    """Its snapshots are of another server, whose transactions were further."""
    sql.query("UPDATE jobs_cursor SET again_seen = '9000000000:9000000000:'")
    assert trigger_late_commits() == 0
    with uncommitted(acme, **due_at(first_slot + 3)) as [job]:
        pass_by(first_slot)
    assert trigger_late_commits() == 1
    assert runs_of(job) == [moment_of(first_slot + 3)]
