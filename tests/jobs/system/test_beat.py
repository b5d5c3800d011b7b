"""jobs/system/beat.py: PeriodicTasks are sent once for each due time, late or not."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from celery import current_app
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
)

import tests.flows.tasks  # noqa: F401  registers a durable task
from fleet.beat.due import send_id
from jobs.system import lease
from jobs.system.beat import Scheduler
from jobs.system.periodic import make_missing
from tests.jobs.scenes import row_held

QUEUE = "heard"
HOUR = timedelta(hours=1)


class Beat:
    """A beat in this process, and what it has sent."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.scheduler = Scheduler(app=current_app._get_current_object())

    def turn(self) -> list[tuple[str, str]]:
        """Have all sent that is due now; return the name and the id of each."""
        while self.scheduler.tick() == 0:
            pass
        sent = [json.loads(text)["headers"] for text in self.client.lrange(QUEUE, 0, -1)]
        self.client.delete(QUEUE)
        return [(headers["periodic_task_name"], headers["id"]) for headers in reversed(sent)]

    def read(self) -> None:
        """Let it see a change at once."""
        PeriodicTasks.update_changed()
        self.scheduler._look_at = 0.0


@pytest.fixture
def beat(db: None, broker: redis.Redis) -> Iterator[Beat]:
    # Not deleted: it would make them again.
    PeriodicTask.objects.update(enabled=False)
    made = Beat(broker)
    yield made
    made.scheduler.close()
    # Celery makes a queue of each name that it is given, and offers that to submits.
    current_app.amqp.queues.pop(QUEUE, None)


@pytest.fixture
def as_installed(committed: None) -> Iterator[None]:
    """Real commits, and the entries of an installation again after them."""
    yield
    PeriodicTask.objects.all().delete()
    IntervalSchedule.objects.all().delete()
    make_missing()


def now() -> datetime:
    return datetime.now(tz=UTC)


def every(seconds: int, name: str = "often", **facts: Any) -> PeriodicTask:
    """Return an entry by interval."""
    interval = IntervalSchedule.objects.create(every=seconds, period="seconds")
    return PeriodicTask.objects.create(
        name=name, task="tests.any", queue=QUEUE, interval=interval, **facts
    )


def daily(due_at: datetime, **facts: Any) -> PeriodicTask:
    """Return an entry by crontab that is due each day at this minute."""
    at = CrontabSchedule.objects.create(minute=due_at.minute, hour=due_at.hour, timezone="UTC")
    return PeriodicTask.objects.create(
        name="daily", task="tests.any", queue=QUEUE, crontab=at, **facts
    )


def minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def test_an_interval_goes_on_from_its_due_time(beat: Beat) -> None:
    """Not from the time of the send; one send stands for all that were missed."""
    began_at = now() - timedelta(seconds=25)
    entry = every(10, last_run_at=began_at)
    due_at = began_at + timedelta(seconds=20)
    assert beat.turn() == [("often", send_id("often", due_at))]
    entry.refresh_from_db()
    assert (entry.last_run_at, entry.total_run_count) == (due_at, 1)
    assert beat.turn() == []


def test_the_pulse_is_due_on_the_second(beat: Beat) -> None:
    """Whenever it was sent last: a minute's jobs do not wait for half a second, by chance."""
    began_at = datetime(2026, 1, 1, 12, 0, 7, 654_321, UTC)
    every(1, name="pulse", last_run_at=began_at)
    PeriodicTask.objects.update(task="fairshift.system.pulse")
    (name, task_id), *_ = beat.turn()  # a second may begin in the middle of it
    seconds = int((now() - began_at).total_seconds())
    on_the_second = began_at.replace(microsecond=0) + timedelta(seconds=seconds)
    ids = [send_id("pulse", on_the_second + timedelta(seconds=late)) for late in (-1, 0, 1)]
    assert name == "pulse"
    assert task_id in ids


def test_a_crontab_that_was_missed_is_sent_once(beat: Beat) -> None:
    """At once, at whatever hour. Stock does not read it until its hour is near again."""
    due_at = minute(now() - 5 * HOUR)
    daily(due_at, last_run_at=due_at - 24 * HOUR)
    assert beat.turn() == [("daily", send_id("daily", due_at))]
    assert beat.turn() == []


def test_a_changed_crontab_holds_from_its_change(beat: Beat) -> None:
    """Its times before were not missed. Stock sends it at once, at a wrong hour."""
    last = minute(now() - 2 * HOUR)
    entry = daily(last, last_run_at=last)
    assert beat.turn() == []
    earlier = now() - HOUR
    entry.crontab = CrontabSchedule.objects.create(
        minute=earlier.minute, hour=earlier.hour, timezone="UTC"
    )
    entry.save()
    beat.read()
    assert beat.turn() == []


def test_a_start_time_is_the_first_due_time(beat: Beat) -> None:
    """Of an interval; a crontab entry waits for its first minute after that."""
    start = now() - timedelta(seconds=3)
    every(60, start_time=start)
    daily(now() - 3 * HOUR, start_time=start)
    assert beat.turn() == [("often", send_id("often", start))]


def test_a_one_off_is_sent_once_and_off_then(beat: Beat) -> None:
    """Also when the beat that has sent it is gone before it was off."""
    at = ClockedSchedule.objects.create(clocked_time=now() - HOUR)
    entry = PeriodicTask.objects.create(
        name="once", task="tests.any", queue=QUEUE, clocked=at, one_off=True
    )
    assert [name for name, _ in beat.turn()] == ["once"]
    beat.scheduler.close()
    assert Beat(beat.client).turn() == []
    entry.refresh_from_db()
    assert not entry.enabled


def test_an_expired_entry_is_not_sent(beat: Beat) -> None:
    entry = every(1, last_run_at=now() - HOUR, expires=now() - timedelta(minutes=1))
    assert beat.turn() == []
    entry.refresh_from_db()
    assert not entry.enabled


def test_an_entry_that_cannot_be_followed_stops_no_other(beat: Beat) -> None:
    """It is left out, with a word in the log. Stock's beat ends with it."""
    PeriodicTask.objects.bulk_create([PeriodicTask(name="broken", task="tests.any", queue=QUEUE)])
    every(10, last_run_at=now() - timedelta(seconds=10))
    assert [name for name, _ in beat.turn()] == ["often"]


def test_one_message_of_a_system_task_waits_at_most(beat: Beat) -> None:
    """On an overloaded machine they would pile up. Other entries are sent.

    It does not expire, whatever its row says: Celery would have the worker's clock decide.
    """
    every(1, name="system", last_run_at=now() - timedelta(seconds=10), expire_seconds=60)
    PeriodicTask.objects.update(task="fairshift.system.promote")
    every(1, name="other", last_run_at=now() - timedelta(seconds=10))
    beat.client.lpush(QUEUE, "no message", "[]")
    for _ in range(3):
        PeriodicTask.objects.update(last_run_at=now() - timedelta(seconds=10))
        beat.read()
        while beat.scheduler.tick() == 0:
            pass
    waiting = beat.client.lrange(QUEUE, 0, -1)[:-2]
    headers = [json.loads(text)["headers"] for text in waiting]
    names = [found["periodic_task_name"] for found in headers]
    assert (names.count("system"), names.count("other")) == (1, 3)
    [expires] = [found["expires"] for found in headers if found["task"].endswith("promote")]
    assert expires is None
    beat.client.delete(QUEUE)
    PeriodicTask.objects.update(last_run_at=now() - timedelta(seconds=10))
    beat.read()
    assert {name for name, _ in beat.turn()} == {"system", "other"}


def test_an_entry_that_somebody_holds_does_not_stop_the_beat(
    as_installed: None, beat: Beat
) -> None:
    """Its last run is written when it is free: a transaction on it may stay open for long."""
    entry = every(10, last_run_at=now() - timedelta(seconds=10))
    PeriodicTask.objects.update(task="fairshift.system.promote")
    assert len(beat.turn()) == 1
    PeriodicTask.objects.update(last_run_at=None)
    beat.scheduler._dirty.add(entry.name)
    with row_held("django_celery_beat_periodictask", entry.pk):
        beat.scheduler.sync()
        assert beat.scheduler._dirty == {"often"}
    beat.scheduler.sync()
    assert not beat.scheduler._dirty
    due_at = entry.last_run_at + timedelta(seconds=10)
    entry.refresh_from_db()
    assert entry.last_run_at == due_at


def test_entries_are_due_by_postgresql_s_clock(beat: Beat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock of the process says: here it is an hour late."""
    read = lease.ServerClock.read
    monkeypatch.setattr(lease.ServerClock, "read", lambda self, at: read(self, at + HOUR))
    every(1800, last_run_at=now())
    assert len(beat.turn()) == 1
