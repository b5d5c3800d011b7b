"""The schedule of a job: saved in its normal form, given its place, told in words and times."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from jobs.models import Job, Owner
from tests.jobs.admin.conftest import stored_job
from tests.jobs.admin.jobs.test_form import errors, fields, moment

pytestmark = pytest.mark.usefixtures("offered")

ADD = "admin:jobs_job_add"


def made(client: Client, owner: Owner, **changes: Any) -> Job:
    """Save a job in the form, and return it."""
    answer = client.post(reverse(ADD), fields(owner, **changes))
    assert answer.status_code == 302, errors(answer)
    return Job.objects.get(owner=owner, key=changes.get("key", "sum"))


def page(client: Client, job: Job) -> str:
    return client.get(reverse("admin:jobs_job_change", args=[job.pk])).content.decode()


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({"schedule": "interval", "interval_minutes": "15"}, {"interval_minutes": 15}),
        ({"schedule": "seconds", "interval_seconds": "7"}, {"interval_seconds": 7}),
        (
            {"schedule": "cron", "cron": " 5 4 * *  mon ", "zone": "Europe/Berlin"},
            {"cron": "5 4 * * MON", "zone": "Europe/Berlin"},
        ),
        (
            {"schedule": "once", **moment("once_at")},
            {"once_at": datetime(2031, 3, 4, 5, 7, tzinfo=UTC)},
        ),
        (
            {"schedule": "cron", "cron": "@daily", **moment("end_at")},
            {"end_at": datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)},
        ),
        (
            {"misfire": "all", "misfire_cap": "7", "misfire_deadline_seconds": "90"},
            {"misfire": "all", "misfire_cap": 7, "misfire_deadline_seconds": 90.0},
        ),
    ],
)
def test_each_kind_of_schedule_and_policy_is_saved(
    as_root: Client, acme: Owner, changes: dict[str, Any], columns: dict[str, Any]
) -> None:
    """In its normal form: a time within a minute means its end, an expression has one spelling."""
    job = made(as_root, acme, **changes)
    assert {name: getattr(job, name) for name in columns} == columns


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


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"schedule": "cron", "cron": "<b>nonsense</b>"}, "&lt;b&gt;"),
        ({"schedule": "cron", "cron": "@daily", "zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"schedule": "interval"}, "phase"),
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
