"""jobs/system/retention/rounds.py: what leaves, what stays, and for how long."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from jobs.core import sql
from jobs.models import Backfill, IdempotencyKey, Job, Owner, Submission
from jobs.system.retention import other_tables
from jobs.system.retention.rounds import remove_old_history
from tests.jobs.system.retention.old import (
    attempts_left,
    left,
    logs_left,
    midnight,
    old_run,
    old_tables,
)

pytestmark = pytest.mark.usefixtures("history")

OPEN = ("scheduled", "held", "queued", "admitted", "running", "cancelling", "retrying")


def submission_of(owner: Owner) -> Submission:
    made = Submission.objects.create(owner=owner, task="tests.add", queue="jobs", run_count=2)
    Submission.objects.filter(pk=made.pk).update(created_at=midnight(400))
    return made


@pytest.mark.parametrize(
    ("state", "days", "stays"),
    [
        ("succeeded", 90, True),
        ("succeeded", 91, False),
        ("cancelled", 90, True),
        ("cancelled", 91, False),
        ("expired", 91, False),
        ("failed", 91, True),
        ("failed", 180, True),
        ("failed", 181, False),
        *((state, 400, True) for state in OPEN),
    ],
)
def test_each_state_has_its_days(acme: Owner, state: str, days: int, stays: bool) -> None:
    """90 days after its end, a failed run 180; an open one stays, however old it is."""
    run = old_run(acme, days, state=state)
    remove_old_history()
    assert left([run]) == ({run} if stays else set())
    assert attempts_left([run]) == ({run} if stays and state not in OPEN else set())
    assert logs_left([run]) == attempts_left([run])


@pytest.mark.parametrize(
    ("days", "state", "stays_until"),
    [
        ({"run_days": 365}, "succeeded", 365),
        ({"run_days": 365}, "failed", 365),
        ({"failed_run_days": 365}, "failed", 365),
        ({"failed_run_days": 365}, "succeeded", 90),
        ({"run_days": 40}, "succeeded", 40),
        ({"run_days": 40}, "failed", 180),
        ({"run_days": 40, "failed_run_days": 50}, "failed", 50),
        ({"failed_run_days": 10}, "failed", 90),
        ({"run_days": 5}, "succeeded", 30),
    ],
)
def test_an_owner_may_have_other_days(
    acme: Owner, stranger: Owner, days: dict[str, int], state: str, stays_until: int
) -> None:
    """Longer or shorter, but not shorter than idempotency keys; other owners keep theirs."""
    Owner.objects.filter(pk=acme.pk).update(**days)
    last, gone = (old_run(acme, day, state=state) for day in (stays_until, stays_until + 1))
    usual = old_run(stranger, 90, state=state)
    remove_old_history()
    assert left([last, gone, usual]) == {last, usual}
    assert attempts_left([last, gone, usual]) == {last, usual}


def test_a_run_stays_while_its_submission_has_open_runs(acme: Owner) -> None:
    """The progress of a submission, and a chord over its runs, count all of them."""
    waiting, done = submission_of(acme), submission_of(acme)
    ended = old_run(acme, 100, submission=waiting.pk)
    still_open = old_run(acme, 100, state="held", submission=waiting.pk)
    gone = old_run(acme, 100, submission=done.pk)
    remove_old_history()
    assert left([ended, still_open, gone]) == {ended, still_open}
    assert waiting.progress.total == 2
    assert list(Submission.objects.values_list("pk", flat=True)) == [waiting.pk]


def test_a_run_stays_while_its_backfill_makes_runs(acme: Owner) -> None:
    """Its submission grows; when it is done, both go with the last run."""
    job = Job.objects.create(
        owner=acme, key="a", task="tests.add", schedule="interval", interval_minutes=1
    )
    made = submission_of(acme)
    times = {"start_at": midnight(401), "end_at": midnight(400), "next_at": midnight(401)}
    backfill = Backfill.objects.create(job=job, submission=made, count=5, **times)
    run = old_run(acme, 100, submission=made.pk)
    remove_old_history()
    assert left([run]) == {run}
    Backfill.objects.filter(pk=backfill.pk).update(done_at=midnight(100))
    remove_old_history()
    assert not left([run])
    assert not Submission.objects.exists() and not Backfill.objects.exists()


def test_a_key_finds_its_run_as_long_as_it_is_there(acme: Owner, settings: Settings) -> None:
    """Keys leave first, and no run leaves before KEY_DAYS."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "RUN_DAYS": 1, "FAILED_RUN_DAYS": 1}
    runs = {day: old_run(acme, day) for day in (29, 30, 31)}
    for day, run in runs.items():
        key = IdempotencyKey.objects.create(owner=acme, key=str(day), fingerprint=b"", run_id=run)
        IdempotencyKey.objects.filter(pk=key.pk).update(
            created_at=midnight(day) + timedelta(hours=12)
        )
    remove_old_history()
    assert left(runs.values()) == {runs[29], runs[30]}
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"29", "30"}


def test_no_run_leaves_while_a_key_may_ask_for_it(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round that has not removed all old keys leaves runs to the next one."""
    monkeypatch.setattr(other_tables, "BATCH", 2)
    monkeypatch.setattr(other_tables, "BATCHES", 2)
    run = old_run(acme, 91)
    for key in "abcde":
        IdempotencyKey.objects.create(owner=acme, key=key, fingerprint=b"", run_id=run)
    IdempotencyKey.objects.update(created_at=midnight(91))
    remove_old_history()
    assert left([run]) == {run} and IdempotencyKey.objects.count() == 1
    remove_old_history()
    assert not left([run])


def test_few_runs_that_stay_share_a_partition(acme: Owner) -> None:
    """A partition costs planning time: those of up to 31 days become one, with each of its runs."""
    failed = [old_run(acme, day, state="failed") for day in (100, 101, 103, 120, 125, 140)]
    for day in (100, 101, 103, 120, 125, 140):
        old_run(acme, day)
    remove_old_history()
    days = [f"{midnight(day):%Y%m%d}" for day in (140, 103)]
    names = [f"jobs_{kind}_{day}" for kind in ("attempt", "log", "run") for day in days]
    assert left(failed) == set(failed) == attempts_left(failed)
    assert old_tables() == names


def test_runs_of_the_default_partition_move_into_a_new_one(acme: Owner) -> None:
    """When a partition that is replaced covers their day."""
    failed = [old_run(acme, day, state="failed") for day in (100, 110)]
    lone = old_run(acme, 105, state="failed", has_partition=False)
    for day in (100, 110):
        old_run(acme, day)
    remove_old_history()
    assert left([*failed, lone]) == {*failed, lone} == attempts_left([*failed, lone])
    rows = sql.query("SELECT DISTINCT tableoid::regclass::text AS home FROM jobs_run")
    assert [row["home"] for row in rows] == [f"jobs_run_{midnight(110):%Y%m%d}"]


def test_lines_without_their_run_are_removed(acme: Owner) -> None:
    """Those in the default partition: their run was started again after the other was dropped."""
    stays, gone = (old_run(acme, day, has_partition=False) for day in (80, 300))
    sql.query("DELETE FROM jobs_run WHERE id = %s", [gone])
    remove_old_history()
    assert logs_left([stays, gone]) == {stays}
