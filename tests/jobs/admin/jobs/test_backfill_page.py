"""Backfills: asked for by range, counted before they begin, followed and cancelled."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Backfill, Job, Owner, Run
from jobs.recurring.backfill import backfill, make_pending_runs
from tests.jobs.admin.conftest import hidden, said, stored_job

Person = Callable[..., Client]
RANGE = {"start_0": "2026-03-01", "start_1": "00:00:00", "end_0": "2026-03-02", "end_1": "00:00:00"}
START, END = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)


def stored(owner: Owner, key: str = "hourly", **columns: Any) -> Job:
    return stored_job(owner, key, **{"schedule": "cron", "cron": "@hourly", **columns})


@pytest.fixture
def hourly(acme: Owner) -> Job:
    """A job of acme that is due each hour."""
    return stored(acme)


def address(job: Job) -> str:
    return reverse("jobs:job_action", args=[job.pk, "backfill"])


def sent(answer: Any, **fields: Any) -> dict[str, Any]:
    """Return what a browser sends of a page that asks, with these fields typed in."""
    return {**hidden(answer), **fields}


def looked(client: Client, job: Job, **changes: str) -> Any:
    """Return the answer to a page that was filled in with a range."""
    url = address(job)
    return client.post(url, sent(client.get(url), **RANGE | changes))


def test_a_backfill_is_counted_and_then_confirmed(as_root: Client, hourly: Job) -> None:
    """The first answer says how many runs it makes and makes none; the second begins it."""
    url = address(hourly)
    counted = as_root.post(url, sent(as_root.get(url), **RANGE, reason="lost data"))
    assert "This makes 24 runs" in counted.content.decode()
    assert not Backfill.objects.exists()
    done = as_root.post(url, sent(counted, **RANGE, reason="lost data"), follow=True)
    made = Backfill.objects.get()
    assert (made.count, made.start_at, made.end_at) == (24, START, END)
    assert said(done) == ["The backfill has begun: 24 runs are being made."]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.actor_name) == ("backfill", "lost data", "root")


def test_another_range_or_schedule_is_counted_again(as_root: Client, hourly: Job) -> None:
    """What was confirmed is what was shown."""
    url, counted = address(hourly), looked(as_root, hourly)
    other = as_root.post(url, sent(counted, **{**RANGE, "end_0": "2026-03-03"}))
    assert "This makes 48 runs" in other.content.decode()
    Job.objects.update(cron="0 */2 * * *")
    third = as_root.post(url, sent(counted, **RANGE))
    assert "This makes 12 runs" in third.content.decode()
    assert not Backfill.objects.exists()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"end_0": "2026-02-01"}, "later than start"),
        ({"end_0": "2100-01-01"}, "in the future"),
        ({"start_0": "1999-01-01"}, "2000-01-01"),
        ({"start_0": "2000-01-01"}, "100,000"),
        ({"end_0": "2026-03-01", "end_1": "00:00:00", "start_1": "00:00:00"}, "later than start"),
        ({"start_0": "soon"}, "valid date"),
    ],
)
def test_a_bad_range_is_refused_with_the_limit(
    as_root: Client, hourly: Job, changes: dict[str, str], problem: str
) -> None:
    """At its field, and nothing begins."""
    answer = looked(as_root, hourly, **changes)
    assert problem in answer.content.decode()
    assert not Backfill.objects.exists()


@pytest.mark.parametrize("noun", ["backfill", "submission"])
def test_one_that_is_being_made_is_stopped(as_root: Client, hourly: Job, noun: str) -> None:
    """Before its first run as well; also by a cancel of its submission."""
    made = backfill(hourly, START, END)
    key = made.pk if noun == "backfill" else made.submission_id
    url = reverse(f"jobs:{noun}_action", args=[key, "cancel"])
    as_root.post(url, sent(as_root.get(url)))
    make_pending_runs()
    assert not Run.objects.exists()
    page = as_root.get(reverse("admin:jobs_backfill_change", args=[made.pk]))
    assert "stopped" in page.content.decode()
