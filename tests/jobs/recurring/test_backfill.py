"""jobs/recurring/backfill.py: a range of the past is run again, exactly once, and can be
stopped.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User

import jobs
from jobs.core.errors import OptionError
from jobs.core.ids import scheduled_id
from jobs.models import AuditEntry, Backfill, Owner, Run
from jobs.recurring import backfill as backfill_module
from jobs.recurring.backfill import backfill, count_backfill, make_pending_runs
from tests.jobs.recurring.scenes import at, recurring, runs_of
from tests.jobs.scenes import at_once, behind


def test_it_is_counted_before_it_begins(acme: Owner) -> None:
    """From the start until before the end; nothing is made by that."""
    job = recurring(acme)
    assert count_backfill(job, at(0), at(10)) == 10
    daily = recurring(acme, schedule="cron", cron="@daily", zone="Europe/Berlin")
    assert count_backfill(daily, at(-1440 * 7), at(0)) == 7
    slow = recurring(acme, schedule="seconds", interval_seconds=7)
    assert count_backfill(slow, at(0), at(7)) == 60
    assert not Run.objects.exists() and not Backfill.objects.exists()


@pytest.mark.parametrize(
    ("start", "end", "field", "problem"),
    [
        (at(0), at(0), "end", "later than start"),
        (at(0), datetime(2100, 1, 1, tzinfo=UTC), "end", "future"),
        (datetime(1999, 1, 1, tzinfo=UTC), at(0), "start", "2000-01-01"),
        (at(0).replace(tzinfo=None), at(1), "start", "time zone"),
        (at(0), "2026-01-01", "end", "time zone"),
        (at(0), at(0, seconds=0.5) + timedelta(days=70), "end", "100,000"),
        (at(0, seconds=1), at(0, seconds=2), "end", "no due time"),
    ],
)
def test_a_bad_range_is_refused_by_its_limit(
    acme: Owner, start: Any, end: Any, field: str, problem: str
) -> None:
    """And a range that is too large at once, whatever it holds."""
    with pytest.raises(OptionError, match=problem) as caught:
        count_backfill(recurring(acme), start, end)
    assert caught.value.option == field
    cron = recurring(acme, schedule="cron", cron="* * * * *")
    with pytest.raises(OptionError):
        backfill(cron, start, end)
    assert not Backfill.objects.exists()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [({"enabled": False}, "enabled"), ({"history_policy": "none"}, "history 'none'")],
)
def test_a_job_that_cannot_is_refused(acme: Owner, fields: dict[str, Any], problem: str) -> None:
    """By what keeps it."""
    with pytest.raises(OptionError, match=problem):
        backfill(recurring(acme, **fields), at(0), at(10))


def test_its_runs_are_one_submission(acme: Owner) -> None:
    """Each due time once more, beside the run that was due; the audit says who wanted it."""
    job, maria = recurring(acme, name="Nightly"), User.objects.create(username="maria")
    made = job.backfill(at(0), at(10), actor=maria, reason="wrong firmware")
    assert (made.count, made.made, made.submission.label) == (10, 0, "backfill of Nightly")
    assert (made.submission.run_count, made.submission.owner) == (10, acme)
    assert make_pending_runs() == 10 and make_pending_runs() == 0
    made.refresh_from_db()
    assert made.made == 10 and made.done_at is not None
    runs = list(Run.objects.filter(submission=made.submission).order_by("due_at"))
    assert [run.due_at for run in runs] == [at(minute) for minute in range(10)]
    assert runs[0].id == scheduled_id(job.pk, at(0), salt=f"backfill:{made.pk}")
    entry = AuditEntry.objects.get(action="backfill")
    assert (entry.actor_name, entry.reason, entry.details["runs"]) == (
        "maria",
        "wrong firmware",
        10,
    )
    again = jobs.backfill(job, at(0), at(2))
    assert (
        make_pending_runs() == 2 and len(runs_of(job)) == 12 and again.submission != made.submission
    )


def test_a_killed_one_goes_on_where_it_was(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chunk is whole, with its progress, or not there at all."""
    monkeypatch.setattr(backfill_module, "CHUNK", 3)
    job, chunks = recurring(acme), iter(range(99))
    made = backfill(job, at(0), at(10))
    make_runs = backfill_module.make_runs

    def die_in_the_third(*args: Any, **options: Any) -> int:
        count = make_runs(*args, **options)
        if next(chunks) == 2:
            raise ConnectionError
        return count

    with monkeypatch.context() as patch:
        patch.setattr(backfill_module, "make_runs", die_in_the_third)
        with pytest.raises(ConnectionError):
            make_pending_runs()
    made.refresh_from_db()
    assert (made.made, made.next_at, made.done_at) == (6, at(5, seconds=0.5), None)
    assert len(runs_of(job)) == 6
    assert make_pending_runs() == 4 and runs_of(job) == [at(minute) for minute in range(10)]


def test_several_take_turns(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one does not keep a small one waiting for its end."""
    monkeypatch.setattr(backfill_module, "CHUNK", 3)
    large, small = recurring(acme), recurring(acme)
    backfill(large, at(0), at(30))
    backfill(small, at(0), at(3))
    chunks = []
    make_runs = backfill_module.make_runs

    def noted(pairs: list[tuple[int, int]], **options: Any) -> int:
        chunks.append(pairs[0][0] if pairs else None)
        return make_runs(pairs, **options)

    monkeypatch.setattr(backfill_module, "make_runs", noted)
    make_pending_runs()
    assert chunks[:3] == [large.pk, small.pk, large.pk]
    assert (len(runs_of(large)), len(runs_of(small))) == (30, 3)


def test_two_workers_make_each_run_once(
    committed: None, broker: redis.Redis, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns at the row."""
    monkeypatch.setattr(backfill_module, "CHUNK", 5)
    job = recurring(acme)
    made = backfill(job, at(0), at(60))
    at_once(make_pending_runs, make_pending_runs, make_pending_runs)
    make_pending_runs()
    made.refresh_from_db()
    assert made.made == 60 and runs_of(job) == [at(minute) for minute in range(60)]


def test_cancelling_its_submission_stops_it(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was made is cancelled, and no more is made."""
    monkeypatch.setattr(backfill_module, "CHUNK", 3)
    job = recurring(acme)
    made = backfill(job, at(0), at(10))
    make_pending_runs(seconds=-1)
    backfill_module._next_chunk(after=0)
    assert made.submission.cancel().cancelled == 3
    assert make_pending_runs() == 0
    assert {run.state for run in Run.objects.filter(job=job)} == {"cancelled"}
    made.refresh_from_db()
    assert made.made == 3 and made.done_at is not None


def test_a_chunk_that_is_being_made_is_cancelled_too(
    committed: None, broker: redis.Redis, acme: Owner
) -> None:
    """The cancel waits for it, and then sees its runs."""
    job = recurring(acme)
    made = backfill(job, at(0), at(4))
    with behind(made.submission.cancel) as (begin, outcomes):
        make_pending_runs()
        begin()
    assert outcomes == [(4, 0)]
    assert {run.state for run in Run.objects.filter(job=job)} == {"cancelled"}
