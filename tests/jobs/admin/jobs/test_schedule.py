"""The schedule of a job: refused by field, given its place, told in words and times."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client, TestCase
from django.urls import reverse
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from pytest_django import Settings

from jobs.models import Job, Missed, Owner
from jobs.recurring.timetable import next_due, timetable_of, timetable_of_job
from jobs.schedules import Schedule
from tests.jobs.admin.conftest import confirm, stored_job
from tests.jobs.admin.jobs.test_form import EDITS, errors, fields

pytestmark = pytest.mark.usefixtures("offered")

ADD = "admin:jobs_job_add"


def made(client: Client, owner: Owner, **changes: Any) -> Job:
    """Save a job in the form, and return it."""
    answer = client.post(reverse(ADD), fields(owner, **changes))
    assert answer.status_code == 302, errors(answer)
    return Job.objects.get(owner=owner, key=changes.get("key", "sum"))


def page(client: Client, job: Job) -> str:
    return client.get(reverse("admin:jobs_job_change", args=[job.pk])).content.decode()


def previewed(client: Client, **given: Any) -> str:
    return client.get(reverse("admin:jobs_job_preview", query=given)).content.decode()


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        (
            {"schedule": "interval", "interval_minutes": "15"},
            {"interval_minutes": 15},
        ),
        ({"schedule": "seconds", "interval_seconds": "7"}, {"interval_seconds": 7}),
        (
            {"schedule": "cron", "cron": " 5 4 * *  mon ", "zone": "Europe/Berlin"},
            {"cron": "5 4 * * MON", "zone": "Europe/Berlin"},
        ),
        (
            {"schedule": "once", "once_at_0": "2031-03-04", "once_at_1": "05:06:07"},
            {"once_at": datetime(2031, 3, 4, 5, 7, tzinfo=UTC)},
        ),
        (
            {
                "schedule": "cron",
                "cron": "@daily",
                "end_at_0": "2031-03-04",
                "end_at_1": "05:06:07",
            },
            {"end_at": datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)},
        ),
        (
            {"misfire": "all", "misfire_cap": "7", "misfire_deadline_seconds": "90"},
            {"misfire": "all", "misfire_cap": 7, "misfire_deadline_seconds": 90.0},
        ),
        ({"overlap": "skip"}, {"overlap": "skip"}),
        ({"history_policy": "none"}, {"history_policy": "none"}),
    ],
)
def test_each_kind_of_schedule_and_policy_is_saved(
    as_root: Client, acme: Owner, changes: dict[str, Any], columns: dict[str, Any]
) -> None:
    """In its normal form: a time within a minute means its end, an expression has one spelling."""
    job = made(as_root, acme, **changes)
    assert {name: getattr(job, name) for name in columns} == columns


def test_a_job_in_seconds_that_is_saved_has_a_periodic_task(as_root: Client, acme: Owner) -> None:
    """At once; and none when it is saved with another schedule."""
    seconds = {"schedule": "seconds", "interval_seconds": "7"}
    with TestCase.captureOnCommitCallbacks(execute=True):
        job = made(as_root, acme, **seconds)
    entries = PeriodicTask.objects.filter(name=f"fairshift job {job.pk}")
    assert entries.get().interval.every == 7
    address = reverse("admin:jobs_job_change", args=[job.pk])
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert as_root.post(address, fields(acme, schedule="manual")).status_code == 302
    assert not entries.exists()


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"schedule": "interval"}, "interval_minutes", "required"),
        ({"schedule": "interval", "interval_minutes": "0"}, "interval_minutes", "1"),
        ({"schedule": "interval", "interval_minutes": "525601"}, "interval_minutes", "525,600"),
        ({"schedule": "seconds", "interval_seconds": "120"}, "interval_seconds", "minutes=2"),
        ({"schedule": "seconds", "interval_seconds": "86401"}, "interval_seconds", "86,400"),
        ({"schedule": "cron", "cron": "* * * *"}, "cron", "five are wanted"),
        ({"schedule": "cron", "cron": "61 * * * *"}, "cron", "0-59"),
        ({"schedule": "cron", "cron": "0 0 30 2 *"}, "cron", "no date"),
        ({"schedule": "cron", "cron": "@never"}, "cron", "@hourly"),
        ({"schedule": "cron", "cron": "@daily", "zone": "Mars/Olympus"}, "zone", "Mars/Olympus"),
        ({"schedule": "once"}, "once_at", "required"),
        ({"schedule": "manual", "cron": "@daily"}, "cron", "does not go with"),
        ({"schedule": "never"}, "schedule", "never"),
        (
            {
                "schedule": "interval",
                "interval_minutes": "5",
                "start_at_0": "2031-03-04",
                "start_at_1": "05:06",
                "end_at_0": "2031-03-04",
                "end_at_1": "05:06",
            },
            "end_at",
            "later than",
        ),
        ({"misfire_cap": "0"}, "misfire_cap", "1"),
        ({"misfire_cap": "100001"}, "misfire_cap", "100000"),
        ({"misfire_deadline_seconds": "-1"}, "misfire_deadline_seconds", "0.1"),
        ({"overlap": "queue", "history_policy": "none"}, "overlap", "full"),
    ],
)  # fmt: skip
def test_a_bad_schedule_is_refused_by_its_field_with_the_limit(
    as_root: Client, acme: Owner, changes: dict[str, Any], field: str, problem: str
) -> None:
    """The message stands where the mistake was made, says what is allowed, and nothing is kept."""
    answer = as_root.post(reverse(ADD), fields(acme, **changes))
    assert problem in str(errors(answer)[field])
    assert not Job.objects.exists()


def test_what_another_kind_has_left_is_taken_away(as_root: Client, acme: Owner) -> None:
    """Who chooses another kind of schedule need not empty the fields of the one before."""
    job = made(as_root, acme, schedule="cron", cron="@daily", smooth="on")
    url = reverse("admin:jobs_job_change", args=[job.pk])
    sent = fields(acme, schedule="interval", interval_minutes="5", cron="@daily", smooth="on")
    assert as_root.post(url, sent).status_code == 302
    job.refresh_from_db()
    assert (job.schedule, job.interval_minutes, job.cron, job.smooth) == ("interval", 5, "", False)


def test_a_job_keeps_its_place_while_its_interval_stays(as_root: Client, acme: Owner) -> None:
    """Phase and shard are given once; another interval means another place."""
    job = made(as_root, acme, schedule="interval", interval_minutes="600")
    place = (job.phase, job.shard)
    assert None not in place
    other = made(as_root, acme, key="other", schedule="interval", interval_minutes="600")
    assert (other.phase, other.shard) != place
    url = reverse("admin:jobs_job_change", args=[job.pk])
    as_root.post(url, fields(acme, schedule="interval", interval_minutes="600", name="New name"))
    job.refresh_from_db()
    assert job.name == "New name" and (job.phase, job.shard) == place
    as_root.post(url, fields(acme, schedule="interval", interval_minutes="601"))
    job.refresh_from_db()
    assert (job.phase, job.shard) != place
    as_root.post(url, fields(acme))
    job.refresh_from_db()
    assert (job.schedule, job.phase, job.shard) == ("manual", None, None)


def test_the_form_says_what_history_none_does_not_promise(as_root: Client) -> None:
    """Before it is chosen."""
    text = as_root.get(reverse(ADD)).content.decode()
    for word in ("no rows", "no retry history", "no durable cancel", "as durable as the broker"):
        assert word in text


def test_a_page_tells_the_schedule_and_its_next_times_by_two_clocks(
    as_root: Client, acme: Owner, settings: Settings
) -> None:
    """Ten of them: by the job's clock and by the reader's."""
    settings.TIME_ZONE = "America/New_York"
    job = stored_job(acme, schedule="cron", cron="5 4 * * *", zone="Europe/Berlin")
    text = page(as_root, job)
    assert "At 04:05 every day, Europe/Berlin" in text
    assert text.count("04:05 CE") == 10
    assert "yours, America/New_York" in text and "22:05 E" in text


def test_next_times_carry_notes_where_clocks_are_changed() -> None:
    """A time that is skipped, and one that comes twice, say what becomes of them."""
    berlin = Schedule(kind="cron", cron="30 2 * * *", zone="Europe/Berlin")
    spring = timetable_of(berlin, after=datetime(2027, 3, 27, 12, tzinfo=UTC), count=1)
    autumn = timetable_of(berlin, after=datetime(2027, 10, 30, 12, tzinfo=UTC), count=1)
    assert "03:00" in spring.occurrences[0].here and "02:00" in spring.occurrences[0].note
    assert "twice" in autumn.occurrences[0].note


def test_an_interval_job_shows_its_place(as_root: Client, acme: Owner) -> None:
    """And its times to the half second of it."""
    job = stored_job(acme, schedule="interval", interval_minutes=60, phase=17, shard=25)
    text = page(as_root, job)
    assert "minute 17 of 60, second 12.5" in text
    assert text.count(":17:12.5 UTC") == 10


def test_a_job_that_stands_still_says_so(acme: Owner) -> None:
    """Disabled: no times. Paused: none before the pause is over."""
    now = timezone.now()
    columns = {"schedule": "interval", "interval_minutes": 1, "phase": 0, "shard": 0}
    off = timetable_of_job(stored_job(acme, "off", enabled=False, **columns), now=now)
    assert "not enabled" in off.remark and not off.occurrences
    until = now + timedelta(days=3)
    paused = timetable_of_job(stored_job(acme, "paused", paused_until=until, **columns), now=now)
    assert paused.not_before == until and paused.occurrences[0].at >= until


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"schedule": "cron", "cron": "<b>nonsense</b>"}, "&lt;b&gt;"),
        ({"schedule": "cron", "cron": "@daily", "zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"schedule": "interval"}, "phase"),
        ({"schedule": "interval", "phase": 0, "shard": 0}, "interval in minutes"),
        ({"schedule": "once"}, "once at"),
        ({"schedule": "never"}, "never"),
    ],
)
def test_a_schedule_that_cannot_be_read_says_so_on_its_page_and_in_the_list(
    as_root: Client, acme: Owner, columns: dict[str, Any], problem: str
) -> None:
    """Its row is marked as broken, the others are as ever, and the form opens to repair it."""
    job = stored_job(acme, **columns)
    stored_job(acme, "sound", schedule="cron", cron="@daily")
    text = page(as_root, job)
    assert problem in text and "broken" in text and "<b>nonsense" not in text
    listed = as_root.get(reverse("admin:jobs_job_changelist")).content.decode()
    assert "broken" in listed and "At 00:00" in listed


def test_the_list_shows_words_and_the_next_time(as_root: Client, acme: Owner) -> None:
    """Both at a glance."""
    job = stored_job(acme, schedule="interval", interval_minutes=525_600, phase=3, shard=7)
    due = next_due(job, now=timezone.now())
    assert due is not None
    listed = as_root.get(reverse("admin:jobs_job_changelist")).content.decode()
    assert "every 8,760 hours" in listed
    assert f'<time datetime="{due.isoformat()}"' in listed


def test_a_page_lists_the_latest_missed_spans(as_root: Client, acme: Owner) -> None:
    """Ten of them with count and reason, and a link to all."""
    job = stored_job(acme, schedule="interval", interval_minutes=1, phase=0, shard=0)
    for day in range(1, 13):
        at = datetime(2026, 1, day, tzinfo=UTC)
        Missed.objects.create(
            job=job, owner=acme, first_at=at, last_at=at, count=day, reason="outage"
        )
    text = page(as_root, job)
    assert "2026-01-12" in text and "<b>12 ×</b> no scheduler or worker" in text
    assert "2026-01-02" not in text
    assert reverse("admin:jobs_missed_changelist", query={"job": job.pk}) in text


def test_what_a_pause_kept_from_running_is_recorded_when_it_is_resumed(
    as_root: Client, acme: Owner
) -> None:
    """Not only when the sweep comes by."""
    now = timezone.now()
    # Due half an hour ago, and an hour before that: no boundary is near.
    phase = (now - timedelta(minutes=30)).minute
    job = stored_job(acme, schedule="interval", interval_minutes=60, phase=phase, shard=0)
    Job.objects.filter(pk=job.pk).update(paused_until=now + timedelta(hours=1))
    Job.objects.filter(pk=job.pk).update(paused_from=now - timedelta(hours=2))
    confirm(as_root, reverse("admin:jobs_job_actions", args=[job.pk, "resume"]))
    [missed] = Missed.objects.all()
    assert missed.reason == "paused" and missed.count == 2


def test_a_schedule_is_told_while_it_is_typed(as_root: Client) -> None:
    """The words and the next five times; nothing is stored."""
    text = previewed(
        as_root, schedule="cron", cron="5 4 * * *", zone="Asia/Tokyo", interval_minutes=9
    )
    assert "At 04:05" in text and text.count("04:05 JST") == 5
    text = previewed(as_root, schedule="once", once_at_0="2031-03-04", once_at_1="05:06:07")
    assert "2031-03-04 05:07" in text
    assert "every 7 seconds" in previewed(as_root, schedule="seconds", interval_seconds="7")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"schedule": "cron", "cron": "<script>"}, "fields, five are wanted"),
        ({"schedule": "cron", "cron": "@daily", "zone": "Europe/Berlim"}, "Europe/Berlin"),
        ({"schedule": "interval", "interval_minutes": "many"}, "interval in minutes"),
        ({"schedule": "once", "once_at_0": "soon", "once_at_1": ""}, "once at"),
        ({"schedule": "never"}, "schedule"),
        ({}, "schedule"),
        ({"schedule": "manual", "job": "9" * 30}, "job"),
    ],
)
def test_a_mistake_is_told_while_it_is_typed(
    as_root: Client, given: dict[str, Any], problem: str
) -> None:
    """By the name of its field, as text."""
    text = previewed(as_root, **given)
    assert problem in text and "fs-error" in text and "<script>" not in text


def test_a_preview_keeps_the_place_of_its_own_job_only(
    person: Callable[..., Client], acme: Owner, stranger: Owner
) -> None:
    """An interval that stays keeps its place; of a stranger's job the place is not told."""
    job = stored_job(acme, schedule="interval", interval_minutes=60, phase=17, shard=0)
    client = person("ann", *EDITS, acme="admin")
    given = {"schedule": "interval", "job": job.pk}
    assert ":17 UTC" in previewed(client, **given, interval_minutes=60)
    assert "chosen when it is saved" in previewed(client, **given, interval_minutes=61)
    other = person("eve", *EDITS, stranger="admin")
    assert "chosen when it is saved" in previewed(other, **given, interval_minutes=60)


def test_a_preview_is_for_those_who_see_jobs(person: Callable[..., Client], acme: Owner) -> None:
    """As the pages of jobs are."""
    client = person("ben", "view_owner", acme="viewer")
    assert client.get(reverse("admin:jobs_job_preview")).status_code == 403
