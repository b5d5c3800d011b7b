"""jobs/definitions/beat_import.py: PeriodicTasks become jobs, or are refused by what keeps them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import current_app
from celery.app.routes import Router, prepare
from celery.schedules import crontab
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from hypothesis import given
from hypothesis import strategies as st
from kombu import Queue

from fleet.beat.leadership import LeaseLost, Sending
from jobs import schedules
from jobs.core.sql import now
from jobs.definitions.beat_import import Imported, import_beat
from jobs.definitions.beat_schedules import cron_of
from jobs.models import Job, Owner, Run
from jobs.recurring.timetable import next_due
from jobs.system import lease

SOON = datetime(2150, 1, 1, 12, 0, 30, tzinfo=UTC)
NORTHWIND = '{"fairshift": {"owner": "northwind"}}'
PAST = "2020-01-01T00:00Z"


def entry(name: str = "nightly", **fields: Any) -> PeriodicTask:
    if not {"interval", "crontab", "clocked", "solar"} & fields.keys():
        fields["interval"] = interval(5, "minutes")
    given = {"task": "tests.add", "args": "[1]", "kwargs": '{"y": 2}', **fields}
    return PeriodicTask.objects.create(name=name, **given)


def cron(minute: str = "0", hour: str = "3", zone: str = "UTC", **fields: str) -> CrontabSchedule:
    place = ZoneInfo(zone)
    return CrontabSchedule.objects.create(minute=minute, hour=hour, timezone=place, **fields)


def interval(every: int, period: str) -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=every, period=period)


def clocked(moment: Any) -> ClockedSchedule:
    return ClockedSchedule.objects.create(clocked_time=moment)


def sunset() -> SolarSchedule:
    return SolarSchedule.objects.create(event="sunset", latitude=1, longitude=1)


def imported(owner: Owner, **options: Any) -> list[Imported]:
    return [
        row
        for row in import_beat(owner, **options)
        if row.problem != "belongs to Fairshift or Celery"
    ]


def job_of(owner: Owner, made: PeriodicTask) -> Job:
    [row] = imported(owner)
    assert row.verdict == "imported", row
    made.refresh_from_db()
    assert not made.enabled
    return Job.objects.get(owner=owner, key=made.name)


@pytest.mark.parametrize(
    ("every", "period", "minutes", "seconds"),
    [
        (5, "minutes", 5, None),
        (2, "days", 2_880, None),
        (120, "seconds", 2, None),
        (90, "seconds", None, 90),
        (2_000_000, "microseconds", None, 2),
    ],
)
def test_intervals(
    acme: Owner, every: int, period: str, minutes: int | None, seconds: int | None
) -> None:
    """Whole minutes have a place in time, others are kept as seconds."""
    job = job_of(acme, entry(interval=interval(every, period)))
    assert (job.interval_minutes, job.interval_seconds) == (minutes, seconds)
    assert job.schedule == ("interval" if minutes else "seconds")
    assert (job.phase is not None) == (minutes is not None)


@pytest.fixture
def retried() -> Iterator[str]:
    """The name of a task that Celery itself tries again."""

    @current_app.task(
        name="tests.retried", shared=False, autoretry_for=(OSError,), dont_autoretry_for=(EOFError,)
    )
    def retried() -> None: ...

    yield retried.name
    current_app.tasks.unregister(retried.name)


def test_a_task_is_tried_as_often_as_before(acme: Owner, retried: str) -> None:
    """Once, unless it says otherwise: it may have sent half of its mails."""
    entry("once")
    entry("again", task=retried, args="[]", kwargs="{}")
    told = {row.name: (row.attempts, row.retry_on) for row in imported(acme)}
    assert told == {"once": (1, ()), "again": (4, ("builtins.OSError",))}
    assert Job.objects.get(key="again").give_up_on == ["builtins.EOFError"]
    assert Job.objects.get(key="once").max_attempts == 1


def test_an_interval_keeps_its_place(acme: Owner) -> None:
    """A daily one that ran at 04:28:10 last is due at 04:28:10 the next time."""
    last = (now() - timedelta(hours=30)).replace(microsecond=500_000)
    made = entry(interval=interval(1, "days"))
    PeriodicTask.objects.update(last_run_at=last)
    [row] = imported(acme, is_plan=True)
    assert row.due_at == last + timedelta(days=2)
    job = job_of(acme, made)
    assert next_due(job, now=now()) == last + timedelta(days=2)


@pytest.mark.parametrize("hours", [2, 30])
def test_what_beat_has_not_sent_runs_once(acme: Owner, hours: int) -> None:
    """A due time that has passed runs at once, as beat would send it; one to come does not."""
    entry(interval=interval(1, "days"))
    PeriodicTask.objects.update(last_run_at=now() - timedelta(hours=hours))
    [row] = imported(acme, is_plan=True)
    assert row.due_before is not None and row.at is not None
    assert (row.due_before <= row.at) == (hours == 30)
    assert not Run.objects.exists()
    imported(acme)
    assert Run.objects.filter(job__key="nightly").count() == (hours == 30)


def test_a_beat_that_has_read_the_entry_sends_it_no_more(acme: Owner) -> None:
    """The import leads for some seconds: a beat that then leads reads all entries again."""
    assert lease.acquire(lease.BEAT, "a beat", 60)
    entry()
    imported(acme)
    sending = Sending("nightly", now(), "some-id")
    with pytest.raises(LeaseLost):
        lease.SentEntries().note(sending, holder="a beat")
    assert not lease.acquire(lease.BEAT, "a beat", 60)


def test_what_else_an_entry_says(acme: Owner) -> None:
    """Its bounds, its queue, its owner, its arguments by name, and how long its message is good."""
    start, end = now() + timedelta(days=1), now() + timedelta(days=9)
    headers = '{"fairshift": {"owner": "acme"}}'
    arguments = {"args": "[]", "kwargs": '{"x": 1, "y": 2}'}
    made = entry(start_time=start, expires=end, queue="jobs", headers=headers, **arguments)
    job = job_of(acme, made)
    assert (job.start_at, job.end_at, job.queue, job.owner) == (start, end, "jobs", acme)
    bare = entry("bare", expire_seconds=60, args="[3, 4]", kwargs="{}")
    import_beat(acme)
    assert Job.objects.get(key="bare").deadline_seconds == 60
    payload = bytes(Job.objects.get(key=bare.name).payload)
    assert json.loads(payload)[:2] == [[], {"x": 3, "y": 4}]


@pytest.mark.parametrize(
    ("routes", "own", "expected"),
    [
        ({"tests.*": {"queue": "night"}}, None, "night"),
        ({"tests.*": {"queue": "night"}}, "jobs", "jobs"),
        ({"other.*": {"queue": "night"}}, None, ""),
    ],
)
def test_the_queue_is_that_of_the_project_s_routes(
    acme: Owner,
    monkeypatch: pytest.MonkeyPatch,
    routes: dict[str, Any],
    own: str | None,
    expected: str,
) -> None:
    """As beat would send it; the entry's own queue goes first."""
    amqp = current_app.amqp
    monkeypatch.setitem(amqp.queues, "night", Queue("night"))
    found = Router(prepare([routes]), queues=amqp.queues, app=current_app)
    monkeypatch.setattr(amqp, "router", found)
    assert job_of(acme, entry(queue=own)).queue == expected


@pytest.mark.parametrize(("given", "expected"), [(None, None), (0, 9), (3, 6), (9, 0), (200, 0)])
def test_a_priority_stays(acme: Owner, given: int | None, expected: int | None) -> None:
    """On Redis Celery serves 0 first, a job's highest is 9; Kombu takes more than 9 for 9."""
    assert job_of(acme, entry(priority=given)).priority == expected


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"minute": "*/5", "hour": "*"}, "*/5 * * * *"),
        ({"day_of_week": "mon-fri"}, "0 3 * * MON-FRI"),
        ({"day_of_week": "fri-mon"}, "0 3 * * 0,1,5,6"),
        ({"day_of_week": "0-6", "day_of_month": "1,15"}, "0 3 1,15 * *"),
    ],
)
def test_crontabs(acme: Owner, fields: dict[str, str], text: str) -> None:
    """As they stand where cron means the same by it, else written out; with their zone."""
    job = job_of(acme, entry(crontab=cron(zone="Europe/Berlin", **fields)))
    assert (job.cron, job.zone, job.schedule) == (text, "Europe/Berlin", "cron")


fields_of = st.fixed_dictionaries(
    {
        "minute": st.sampled_from(["*", "0", "*/7", "1-59/2", "5,10-12", "50-10"]),
        "hour": st.sampled_from(["*", "*/5", "3", "22-2", "0-23"]),
        "day_of_month": st.sampled_from(["*", "1", "*/2", "1-31", "28-3", "*/31"]),
        "month_of_year": st.sampled_from(["*", "*/5", "jan,jul", "11-2", "2"]),
        "day_of_week": st.sampled_from(["*", "0", "sun", "*/2", "*/7", "mon", "0-6", "sat-tue"]),
    }
)


@given(fields_of, st.integers(0, 1_100))
def test_a_crontab_means_what_celery_means(fields: dict[str, str], days: int) -> None:
    """Each minute of a day, unless it is refused."""
    celerys = crontab(**fields)
    row = CrontabSchedule(**fields, timezone=ZoneInfo("UTC"))
    is_both = len(celerys.day_of_month) < 31 and len(celerys.day_of_week) < 7
    if is_both:
        with pytest.raises(Exception, match="both"):
            cron_of(row)
        return
    day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days)
    found = schedules.cron_minutes(cron_of(row)["cron"], "", start=day, end=day + timedelta(1))
    is_day = (
        day.day in celerys.day_of_month
        and day.month in celerys.month_of_year
        and day.isoweekday() % 7 in celerys.day_of_week
    )
    wanted = [
        day + timedelta(hours=hour, minutes=minute)
        for hour in sorted(celerys.hour)
        for minute in sorted(celerys.minute)
    ]
    assert found == (wanted if is_day else [])


def test_a_clocked_entry_is_due_once(acme: Owner) -> None:
    """At the next whole minute."""
    job = job_of(acme, entry(clocked=clocked(SOON), one_off=True))
    assert (job.schedule, job.once_at) == ("once", SOON + timedelta(seconds=30))


@pytest.mark.parametrize(
    ("make", "field", "problem"),
    [
        (lambda: {"crontab": cron(day_of_month="1", day_of_week="1")}, "crontab", "both"),
        (lambda: {"crontab": cron(day_of_month="31", month_of_year="2")}, "crontab", "never"),
        (lambda: {"crontab": cron(day_of_week="7")}, "crontab", "7 > 6"),
        (lambda: {"interval": interval(5, "microseconds")}, "interval", "whole seconds"),
        (lambda: {"solar": sunset()}, "solar", "no solar schedule"),
        (lambda: {"clocked": clocked(PAST), "one_off": True}, "clocked", "passed"),
        (lambda: {"one_off": True}, "one_off", "clocked"),
        (lambda: {"expires": PAST}, "expires", "passed"),
        (lambda: {"task": "tests.ad"}, "task", "tests.add"),
        (lambda: {"task": "tests.refund_everything"}, "task", "is its module imported"),
        (lambda: {"kwargs": '{"z": 2}'}, "arguments", "z"),
        (lambda: {"args": "[1, 2, 3]"}, "arguments", "positional"),
        (lambda: {"args": "{1}"}, "args", "not JSON"),
        (lambda: {"kwargs": "[]"}, "kwargs", "not JSON object"),
        (lambda: {"queue": "nowhere"}, "queue", "is one of"),
        (lambda: {"exchange": "x"}, "exchange", "`queue` alone"),
        (lambda: {"routing_key": "x"}, "routing_key", "`queue` alone"),
        (lambda: {"headers": '{"a": 1}'}, "headers", "no headers"),
        (lambda: {"headers": NORTHWIND}, "headers", "owner northwind, not acme"),
    ],
)
def test_what_a_job_would_not_do_in_the_same_way_is_refused(
    acme: Owner, make: Any, field: str, problem: str
) -> None:
    """By its field; it goes on where it was, and others are imported."""
    bad, good = entry("bad", **make()), entry("good")
    rows = {row.name: row for row in imported(acme)}
    assert (rows["bad"].verdict, rows["bad"].field) == ("refused", field), rows["bad"]
    assert problem in rows["bad"].problem
    assert rows["good"].verdict == "imported"
    bad.refresh_from_db()
    good.refresh_from_db()
    assert (bad.enabled, good.enabled) == (True, False)
    assert [job.key for job in Job.objects.all()] == ["good"]


def test_what_is_off_and_what_drives_the_system_is_left_out(acme: Owner) -> None:
    """And what the owner has already is refused, so nothing is overwritten."""
    entry("off", enabled=False)
    Job.objects.create(owner=acme, key="there", task="tests.add", payload=b"")
    entry("there")
    before = PeriodicTask.objects.filter(name__startswith="fairshift", enabled=True).count()
    rows = {row.name: row for row in import_beat(acme)}
    assert rows["off"].verdict == rows["fairshift: pulse"].verdict == "left out"
    assert (rows["there"].verdict, rows["there"].field) == ("refused", "name")
    assert PeriodicTask.objects.filter(name__startswith="fairshift", enabled=True).count() == before
