"""jobs/system/ends.py: each listener gets every end once, in the transaction that takes it."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction

from fleet import Kind
from jobs.core import sql
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Backfill, End, EndListener, EndMark, Job, Owner, Run, Submission
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs
from jobs.system import ends
from jobs.system.promotion import expire
from tests.jobs.scenes import admitted, ask, finish, living_worker, recorded, submitted

pytestmark = pytest.mark.usefixtures("committed")


def taken(name: str = "mine", *, most: int = 500) -> ends.Ends:
    with transaction.atomic():
        return ends.take(name, most=most)


def test_every_end_is_taken_once(acme: Owner) -> None:
    """Whatever ended the run: its task, a cancel, a deadline before or at admission."""
    ends.listen("mine")
    ends.listen("mine")
    done, failed, retried, cancelled, late, later = submitted(acme, 6)
    worker = living_worker()
    recorded(admitted(worker, done), Kind.SUCCEEDED)
    recorded(admitted(worker, failed), Kind.FAILED, error_type="Oops")
    recorded(admitted(worker, retried), Kind.RETRYING, delay=60.0)
    cancel_runs([cancelled.id])
    Run.objects.filter(id=late.id).update(deadline_at=now() - timedelta(seconds=1))
    ask(worker, [late])
    Run.objects.filter(id=later.id).update(deadline_at=now() - timedelta(seconds=1))
    expire()
    found = taken()
    assert {end.run_id: end.state for end in found.runs} == {
        done.id: State.SUCCEEDED,
        failed.id: State.FAILED,
        cancelled.id: State.CANCELLED,
        late.id: State.EXPIRED,
        later.id: State.EXPIRED,
    }
    [of_failed] = [end for end in found.runs if end.run_id == failed.id]
    assert (of_failed.owner, of_failed.task, of_failed.error_type) == ("acme", "tests.add", "Oops")
    assert not found.submissions and not found.is_full
    assert not taken().runs


def test_a_listener_gets_the_ends_of_its_owners(acme: Owner, northwind: Owner) -> None:
    """Two listeners do not take each other's; one of an owner does not get another owner's."""
    ends.listen("all")
    ends.listen("some", owner_id=northwind.pk)
    ours, theirs = submitted(acme), submitted(northwind)
    finish([*ours, *theirs])
    assert {end.owner for end in taken("all").runs} == {"acme", "northwind"}
    assert [end.owner for end in taken("some").runs] == ["northwind"]
    ends.unlisten("some", owner_id=northwind.pk)
    finish(submitted(northwind))
    assert not taken("some").runs and len(taken("all").runs) == 1


def test_a_take_that_is_rolled_back_takes_nothing(acme: Owner) -> None:
    """A process that ends before its commit has lost no end."""
    ends.listen("mine")
    finish(submitted(acme))
    with transaction.atomic():
        assert len(ends.take("mine").runs) == 1
        transaction.set_rollback(True)
    found = taken(most=1)
    assert len(found.runs) == 1 and len(found.submissions) == 1 and found.is_full
    with pytest.raises(RuntimeError):
        ends.take("mine")


def test_a_submission_ends_with_its_last_run_and_again_after_a_retry(acme: Owner) -> None:
    """Once for each time that all its runs have ended."""
    ends.listen("mine")
    first, second = submitted(acme, 2)
    finish([first], Kind.FAILED)
    assert not taken().submissions
    finish([second])
    [end] = taken().submissions
    assert (end.submission_id, end.task) == (first.submission_id, "tests.add")
    assert end.counts == {State.FAILED: 1, State.SUCCEEDED: 1}
    assert not taken().submissions
    reopen_runs([first.id])
    assert not taken().submissions
    finish([first])
    assert [end.counts for end in taken().submissions] == [Counter({State.SUCCEEDED: 2})]


def test_an_end_that_was_announced_is_not_announced_again(acme: Owner) -> None:
    """Ends of a submission's last runs may be taken one after the other."""
    ends.listen("mine")
    finish(submitted(acme, 3))
    counts = [len(taken(most=1).submissions) for _ in range(4)]
    assert counts == [1, 0, 0, 0]


def test_a_submission_that_a_backfill_adds_to_has_not_ended(acme: Owner) -> None:
    """Its end comes when the backfill is done, although no run ends then."""
    ends.listen("mine")
    [run] = submitted(acme)
    job = Job.objects.create(
        owner=acme, key="j", task="tests.add", interval_minutes=5, queue="jobs"
    )
    backfill = Backfill.objects.create(
        job=job, submission=Submission.objects.get(), count=1, start_at=now(), end_at=now()
    )
    finish([run])
    assert not taken().submissions
    Backfill.objects.filter(pk=backfill.pk).update(done_at=now())
    assert len(taken().submissions) == 1
    assert not taken().submissions


def test_a_silent_listener_is_removed_with_what_was_recorded_for_it(acme: Owner) -> None:
    """The code of a listener may be gone; another one keeps its own."""
    ends.listen("gone")
    ends.listen("mine")
    finish(submitted(acme))
    taken("mine")
    EndListener.objects.filter(name="gone").update(
        taken_at=now() - timedelta(days=ends.SILENT_DAYS, seconds=1)
    )
    assert ends.remove_silent() == ["gone"]
    assert not End.objects.exists()
    assert set(EndMark.objects.values_list("listener", flat=True)) == {"mine"}
    sql.query("UPDATE jobs_endmark SET checked_at = checked_at - interval '8 days'")
    ends.remove_silent()
    assert not EndMark.objects.exists() and EndListener.objects.filter(name="mine").exists()
