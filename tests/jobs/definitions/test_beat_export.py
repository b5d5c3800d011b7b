"""jobs/definitions/beat_export.py: jobs become PeriodicTasks again, due when the jobs were."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import current_app
from celery.schedules import crontab
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
)
from hypothesis import given
from hypothesis import strategies as st

from fleet.beat.due import due_after
from jobs import job as job_task
from jobs import schedules, upsert_jobs
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.definitions.beat_export import DueTimesAreOpen, Exported, export_beat
from jobs.definitions.beat_import import import_beat
from jobs.definitions.beat_schedules import crontab_of
from jobs.models import Attachment, Calendar, Cursor, Job, Owner
from jobs.recurring.tick import run_tick
from jobs.recurring.timetable import next_due
from tests.jobs.recurring.scenes import at, tick_of

pytestmark = pytest.mark.usefixtures("no_ticks")

SOON = datetime(2150, 1, 1, 12, tzinfo=UTC)
COMMAND = {"task": "fairshift.management_command", "arguments": {"name": "clearsessions"}}
RETURN = {"task": "tests.with_a_row", "arguments": {}}
ADD = {"task": "tests.add", "arguments": {"x": 1, "y": 2}, "max_attempts": 1}


def job(owner: Owner, key: str = "nightly", **fields: Any) -> Job:
    if not {"cron", "interval_minutes", "interval_seconds", "once_at", "schedule"} & fields.keys():
        fields["interval_minutes"] = 5
    upsert_jobs(owner, [{"key": key, **ADD, **fields}])
    return Job.objects.get(owner=owner, key=key)


def exported(**options: Any) -> dict[str, Exported]:
    return {row.key: row for row in export_beat(**options)}


def entry_of(name: str = "nightly") -> PeriodicTask:
    return PeriodicTask.objects.get(name=name)


def due_at(entry: PeriodicTask) -> datetime:
    """Return when celery-beat sends an entry next."""
    assert entry.last_run_at is not None
    return due_after(entry.schedule, entry.last_run_at)


@pytest.mark.parametrize(
    "fields",
    [
        {"interval_minutes": 5},
        {"interval_minutes": 10_080},
        {"cron": "*/5 * * * *"},
        {"cron": "0 3 * * MON-FRI", "zone": "Europe/Berlin"},
        {"cron": "@monthly"},
        {"cron": "0 3 1-31 * 1"},
    ],
)
def test_it_is_due_when_the_job_was(acme: Owner, fields: dict[str, Any]) -> None:
    """At the same time of an interval, and by the same crontab in its zone."""
    made = job(acme, **fields)
    before = next_due(made, now=now())
    row = exported()["nightly"]
    assert (row.verdict, row.is_new, row.is_on, row.loses, row.due_at) == (
        *("exported", True, True, ()),
        before,
    )
    assert due_at(entry_of()) == before
    made.refresh_from_db()
    assert not made.enabled


@pytest.mark.parametrize("is_missing", [False, True])
def test_an_interval_in_seconds(acme: Owner, is_missing: bool) -> None:
    """It continues at whole multiples of the interval; beat sends one that has no run yet."""
    made = job(acme, interval_seconds=90)
    if is_missing:
        Job.objects.filter(pk=made.pk).update(effective_from=now() - timedelta(days=1))
    exported()
    entry = entry_of()
    assert (entry.interval.every, entry.interval.period) == (90, "seconds")
    assert due_at(entry).timestamp() % 90 == 0
    assert (due_at(entry) <= now()) == is_missing


def test_a_job_with_one_time(acme: Owner) -> None:
    """It is clocked; one that has passed is left out."""
    job(acme, once_at=SOON)
    job(acme, "past", once_at=now() - timedelta(days=1))
    rows = exported()
    assert (rows["nightly"].due_at, rows["past"].verdict) == (SOON, "left out")
    entry = entry_of()
    assert entry.one_off and entry.clocked.clocked_time == SOON
    assert not PeriodicTask.objects.filter(name="past").exists()


def test_what_else_a_job_says(acme: Owner) -> None:
    """Its bounds, its queue, arguments, priority and deadline."""
    start, end = SOON, SOON + timedelta(days=9)
    job(acme, start_at=start, end_at=end, queue="jobs", priority=6, deadline_seconds=59.5)
    exported()
    entry = entry_of()
    assert (entry.start_time, entry.expires, entry.enabled) == (start, end, True)
    # The queue of Fairshift is the default one: after it, the project's is.
    assert (entry.queue, entry.priority, entry.expire_seconds) == (None, 3, 60)
    assert (json.loads(entry.args), json.loads(entry.kwargs)) == ([], {"x": 1, "y": 2})


def test_in_and_out_changes_nothing(acme: Owner) -> None:
    """An entry that was imported is switched on again as it was, with its own crontab."""
    every = IntervalSchedule.objects.create(every=120, period="seconds")
    # Twice: django-celery-beat allows equal rows.
    crontabs = [CrontabSchedule.objects.create(minute="0 ", day_of_week="sat-tue") for _ in "ab"]
    clocked = ClockedSchedule.objects.create(clocked_time=SOON)
    facts = {"task": "tests.add", "args": "[1]", "kwargs": '{"y": 2}'}
    last = now() - timedelta(seconds=30)
    PeriodicTask.objects.create(name="a", interval=every, priority=200, **facts)
    PeriodicTask.objects.create(name="b", crontab=crontabs[1], queue="jobs", **facts)
    PeriodicTask.objects.create(name="c", clocked=clocked, one_off=True, **facts)
    PeriodicTask.objects.create(name="d", interval=every, enabled=False, **facts)
    PeriodicTask.objects.filter(enabled=True).update(last_run_at=last)
    theirs = PeriodicTask.objects.exclude(task__startswith="fairshift").order_by("name")
    columns = [name.attname for name in PeriodicTask._meta.concrete_fields]
    columns.remove("last_run_at")
    before = list(theirs.values(*columns))
    due = due_at(entry_of("a")).replace(microsecond=0)
    import_beat(acme)
    assert {row.verdict for row in export_beat()} == {"exported"}
    assert list(theirs.values(*columns)) == before
    assert due_at(entry_of("a")).replace(microsecond=0) - due <= timedelta(seconds=1)
    assert IntervalSchedule.objects.filter(every=120).count() == 1


def test_a_job_that_was_changed_changes_its_entry(acme: Owner) -> None:
    """Only what was changed is written."""
    cron = CrontabSchedule.objects.create(minute="0", hour="3", timezone="UTC")
    facts = {"task": "tests.add", "args": "[1, 2]", "queue": "jobs"}
    PeriodicTask.objects.create(name="nightly", crontab=cron, headers="{}", **facts)
    import_beat(acme)
    upsert_jobs(acme, [{"key": "nightly", **ADD, "cron": "0 4 * * *", "queue": "jobs"}])
    row = exported()["nightly"]
    entry = entry_of()
    assert (row.is_new, entry.crontab.hour, entry.args, entry.queue) == (
        False,
        "4",
        "[1, 2]",
        "jobs",
    )


@pytest.mark.parametrize(
    ("fields", "loses"),
    [
        ({}, []),
        ({"overlap": "skip"}, ["overlap"]),
        ({"lock_key": "door"}, ["lock_key"]),
        ({"misfire": "all"}, ["misfire"]),
        ({"max_attempts": 3, "retry_on": ["builtins.OSError"]}, ["max_attempts", "retry_on"]),
        ({"time_limit_seconds": 9}, ["time_limit_seconds"]),
        ({"target": "device", "labels": {"a": "b"}}, ["target_id", "labels"]),
    ],
)
def test_what_an_entry_lacks_is_named(
    acme: Owner, fields: dict[str, Any], loses: list[str]
) -> None:
    """By the job's fields."""
    job(acme, **fields)
    assert list(exported()["nightly"].loses) == loses


@pytest.fixture
def with_a_row() -> Iterator[None]:
    """A task that stock Celery cannot run."""

    @job_task(name="tests.with_a_row")
    def with_a_row() -> None: ...

    yield
    current_app.tasks.unregister(with_a_row.name)


def _closed(acme: Owner) -> None:
    calendar = Calendar.objects.create(owner=acme, name="nights")
    Attachment.objects.create(calendar=calendar, job=job(acme))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda acme: job(acme, cron="0 3 1 * MON"), "cron"),
        (lambda acme: job(acme, cron="0 3 L * *"), "cron"),
        (lambda acme: job(acme, cron="0 3 * * 5#2"), "cron"),
        (lambda acme: job(acme, **RETURN), "task"),
        (lambda acme: job(acme, **COMMAND), "task"),
        (_closed, "calendar"),
    ],
)
def test_what_an_entry_cannot_do_is_refused(
    acme: Owner, with_a_row: None, make: Callable[[Owner], Any], field: str
) -> None:
    """By the job's field; the job goes on, and others are exported."""
    make(acme)
    job(acme, "good")
    rows = exported()
    assert (rows["nightly"].verdict, rows["nightly"].field) == ("refused", field), rows["nightly"]
    assert Job.objects.get(key="nightly").enabled
    assert rows["good"].verdict == "exported"


def test_jobs_that_beat_does_not_send(acme: Owner) -> None:
    """By hand: left out. Switched off or paused: switched off there as well."""
    job(acme, "by hand", schedule="manual")
    job(acme, "off", enabled=False)
    Job.objects.filter(pk=job(acme, "paused").pk).update(paused_until=SOON)
    rows = exported()
    assert {key: row.verdict for key, row in rows.items()} == {
        "by hand": "left out",
        "off": "exported",
        "paused": "exported",
    }
    assert rows["paused"].loses == ("paused_until",)
    assert (entry_of("off").enabled, entry_of("paused").enabled) == (False, False)
    assert entry_of("off").last_run_at is None


@pytest.mark.parametrize("schedule", [{"cron": "* * * * *"}, {"interval_seconds": 7}])
def test_a_job_without_history_ends(acme: Owner, schedule: dict[str, Any]) -> None:
    """It is not switched off: its runs that wait have no row, and would be dropped."""
    made = job(acme, history_policy="none", **schedule)
    before = now()
    exported()
    made.refresh_from_db()
    assert made.enabled and made.next_times() == []
    entry = entry_of()
    assert entry.expires is None
    assert before - timedelta(seconds=2) < due_at(entry) <= now() + timedelta(minutes=1)
    assert exported()["nightly"].verdict == "left out"


def test_due_times_before_are_the_job_s(acme: Owner) -> None:
    """While a tick is open, no job is exported; then the entry begins where the ticks end."""
    job(acme, cron="* * * * *")
    tick = tick_of(at(0), at(1))
    with pytest.raises(DueTimesAreOpen):
        export_beat(patience=0)
    run_tick(tick.pk)
    exported()
    slot = Cursor.objects.get().slot
    assert entry_of().last_run_at == schedules.moment_of(slot) - timedelta(microseconds=1)


fields = st.sampled_from(["*", "*/2", "1", "1,3", "2-5", "3-6/2"])


@given(st.tuples(fields, fields, fields, fields, fields))
def test_a_crontab_means_what_cron_means(parts: tuple[str, ...]) -> None:
    """Each minute of two weeks, unless it is refused."""
    cron = " ".join(parts)
    try:
        columns = crontab_of(cron, "")
    except OptionError:
        return
    assert columns.pop("timezone") == "UTC"
    celerys = crontab(**columns)
    start = datetime(2026, 2, 20, tzinfo=UTC)
    found = schedules.cron_minutes(cron, "", start=start, end=start + timedelta(14))
    minutes = [start + timedelta(minutes=n) for n in range(14 * 1440)]
    assert found == [
        at
        for at in minutes
        if at.minute in celerys.minute
        and at.hour in celerys.hour
        and at.day in celerys.day_of_month
        and at.month in celerys.month_of_year
        and at.isoweekday() % 7 in celerys.day_of_week
    ]
