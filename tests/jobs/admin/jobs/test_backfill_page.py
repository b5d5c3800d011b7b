"""Backfills: asked for by range, counted before they begin, followed and cancelled."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

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


def test_a_double_click_begins_one_backfill(as_root: Client, hourly: Job) -> None:
    """The second click finds that the form has been obeyed."""
    form = sent(looked(as_root, hourly), **RANGE)
    for _ in range(2):
        as_root.post(address(hourly), form)
    assert Backfill.objects.count() == 1


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


@pytest.mark.parametrize(
    "columns",
    [{"enabled": False}, {"history_policy": "none"}, {"schedule": "manual", "cron": ""}],
)
def test_a_job_that_cannot_be_backfilled_says_so(
    as_root: Client, acme: Owner, columns: dict[str, Any]
) -> None:
    """There is no button, and a form that is sent begins nothing."""
    job = stored(acme, **columns)
    page = as_root.get(reverse("admin:jobs_job_change", args=[job.pk])).content.decode()
    assert reverse("admin:jobs_job_actions", args=[job.pk, "backfill"]) not in page
    as_root.post(address(job), RANGE, follow=True)
    assert not Backfill.objects.exists()


def test_a_broken_schedule_is_no_error_of_the_page(as_root: Client, acme: Owner) -> None:
    """The form says what is wrong with it."""
    answer = looked(as_root, stored(acme, cron="nonsense"))
    assert answer.status_code == 200 and "five are wanted" in answer.content.decode()


def test_the_range_is_read_by_the_readers_clock(
    as_root: Client, hourly: Job, settings: Settings
) -> None:
    """And the form says which that is."""
    settings.TIME_ZONE = "Asia/Tokyo"
    url = address(hourly)
    assert "Asia/Tokyo" in as_root.get(url).content.decode()
    as_root.post(url, sent(looked(as_root, hourly), **RANGE))
    assert Backfill.objects.get().start_at == datetime(2026, 2, 28, 15, tzinfo=UTC)


def test_backfill_is_no_action_of_the_list(as_root: Client, hourly: Job) -> None:
    """One range does not mean the same for many jobs."""
    page = as_root.get(reverse("admin:jobs_job_changelist"))
    actions = [name for name, _ in page.context["action_form"].fields["action"].choices]
    assert "pause" in actions and "backfill" not in actions


def test_a_backfill_is_followed_and_cancelled(as_root: Client, hourly: Job) -> None:
    """Its list has its progress; cancelled, no more runs are made, and those made end."""
    made = backfill(hourly, START, END)
    make_pending_runs()
    listed = as_root.get(reverse("admin:jobs_backfill_changelist")).content.decode()
    assert "24 queued" in listed and "unreadable" not in listed
    page = reverse("admin:jobs_backfill_change", args=[made.pk])
    assert "24 / 24" in as_root.get(page).content.decode()
    url = reverse("jobs:backfill_action", args=[made.pk, "cancel"])
    as_root.post(url, sent(as_root.get(url), reason="wrong range"))
    assert set(Run.objects.values_list("state", flat=True)) == {"cancelled"}
    again = as_root.get(url, follow=True)
    assert "has ended" in said(again)[-1]


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


def test_backfills_are_told_to_their_owner_only(
    person: Person, acme: Owner, stranger: Owner, hourly: Job
) -> None:
    """In list, filter, page and verbs; viewers of an owner see, and begin nothing."""
    own = backfill(hourly, START, END)
    other = backfill(stored(stranger), START, END)
    rights = ("view_job", "view_backfill", "run_job", "cancel_submission")
    client = person("ann", *rights, acme="operator")

    def shown(**query: Any) -> list[int]:
        answer = client.get(reverse("admin:jobs_backfill_changelist", query=query))
        return [row.pk for row in answer.context["cl"].result_list]

    assert shown() == [own.pk]
    assert shown(owner="acme") == [own.pk]
    assert shown(owner="stranger") == []
    assert shown(job=other.job_id) == []
    page = reverse("admin:jobs_backfill_change", args=[other.pk])
    assert client.get(page).status_code == 302
    cancel = reverse("admin:jobs_backfill_actions", args=[other.pk, "cancel"])
    assert client.get(cancel).status_code == 404
    assert client.get(address(other.job)).status_code == 404
    assert client.get(address(hourly)).status_code == 200
    viewer = person("ben", *rights, acme="viewer")
    assert viewer.get(address(hourly)).status_code == 403
    assert viewer.get(page.replace(str(other.pk), str(own.pk))).status_code == 200
