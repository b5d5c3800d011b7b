"""jobs/system/lease.py: one holder of a lease at a time, and a ledger that only it writes."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from fleet.beat.leadership import LeaseLost, Sending
from jobs.core import sql
from jobs.models.recurring import Leader, SentEntry
from jobs.system.lease import BEAT, SentEntries, ServerClock, acquire, clock
from tests.jobs.scenes import at_once

pytestmark = pytest.mark.django_db

DUE = datetime(2026, 3, 20, 12, tzinfo=UTC)
ledger = SentEntries()


def report(due_at: datetime, task_id: str = "") -> Sending:
    """Return a send of the entry `report`."""
    return Sending("report", due_at, task_id or due_at.isoformat())


@pytest.fixture
def entry(db: None) -> PeriodicTask:
    every = IntervalSchedule.objects.create(every=1, period="minutes")
    return PeriodicTask.objects.create(name="report", task="tests.report", interval=every)


@pytest.fixture
def held(db: None) -> None:
    """The lease is one's."""
    assert acquire(BEAT, "one", 6)


def test_one_holds_a_lease_until_its_end(db: None) -> None:
    """It may renew it; another one gets it after the end, and not before."""
    assert acquire("name", "one", 6)
    assert acquire("name", "one", 0.05)
    since = Leader.objects.get(name="name").since
    assert not acquire("name", "other", 6)
    sql.query("SELECT pg_sleep(0.06)")
    assert acquire("name", "other", 6)
    assert not acquire("name", "one", 6)
    assert Leader.objects.get(name="name").since > since


def test_of_many_that_ask_at_once_one_leads(committed: None) -> None:
    """By one statement, without a lock beside the row's."""
    names = [str(number) for number in range(8)]
    got = at_once(*[partial(acquire, "crowd", name, 6) for name in names])
    Leader.objects.filter(name="crowd").delete()
    assert sorted(map(bool, got)) == [False] * 7 + [True]


def test_a_noted_send_moves_its_entry(held: None, entry: PeriodicTask) -> None:
    """In one statement: due time, and count of runs."""
    assert ledger.note(report(DUE), holder="one")
    entry.refresh_from_db()
    assert (entry.last_run_at, entry.total_run_count) == (DUE, 1)
    assert list(ledger.unsent()) == [report(DUE)]
    ledger.sent(report(DUE))
    assert list(ledger.unsent()) == []
    assert SentEntry.objects.get().sent_at


def test_who_does_not_lead_notes_nothing(held: None, entry: PeriodicTask) -> None:
    """Whatever it believes: PostgreSQL's clock decides."""
    with pytest.raises(LeaseLost):
        ledger.note(report(DUE), holder="other")
    sql.query("UPDATE jobs_leader SET until = clock_timestamp()")
    with pytest.raises(LeaseLost):
        ledger.note(report(DUE), holder="one")
    assert not SentEntry.objects.exists()
    entry.refresh_from_db()
    assert entry.last_run_at is None


def test_an_entry_that_is_off_is_not_sent_late(held: None, entry: PeriodicTask) -> None:
    """What was noted of it is dropped by the next leader."""
    assert ledger.note(report(DUE), holder="one")
    PeriodicTask.objects.update(enabled=False)
    assert list(ledger.unsent()) == []
    assert not SentEntry.objects.exists()


def test_the_clock_is_postgresql_s(db: None) -> None:
    """It is read with each asking for the lease, and goes on between by itself."""
    [row] = sql.query("SELECT clock_timestamp() AS now")
    fresh = ServerClock()
    fresh.read(row["now"] + timedelta(days=1))
    assert timedelta() <= fresh.now() - row["now"] - timedelta(days=1) < timedelta(seconds=2)
    acquire("name", "one", 6)
    [row] = sql.query("SELECT clock_timestamp() AS now")
    assert abs(clock.now() - row["now"]) < timedelta(seconds=1)
