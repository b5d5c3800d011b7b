"""The form of a job in a real browser: its schedule is described while it is typed."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import Job, Owner

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
ROW = ".form-row.field-{}"
BOX = "[data-preview]"


def stored(owner: Owner, key: str, **columns: Any) -> Job:
    payload = b'[[], {"method": "GET", "url": "https://example.org/"}, {}]'
    return Job.objects.create(
        owner=owner, key=key, task="fairshift.http_request", payload=payload, **columns
    )


def save(page: Any) -> None:
    page.get_by_role("button", name="Save and continue editing").click()
    page.locator(".messagelist .success").wait_for()


def test_a_schedule_is_told_while_it_is_typed(browse: Browse, acme: Owner) -> None:
    """A description and five times, or the mistake; only its kind's fields are shown and sent."""
    job = stored(acme, "probe")
    page = browse(f"/admin/jobs/job/{job.pk}/change/")
    assert not page.locator(ROW.format("cron")).is_visible()
    page.select_option("#id_schedule", "cron")
    assert page.locator(ROW.format("cron")).is_visible()
    assert not page.locator(ROW.format("once_at")).is_visible()
    page.locator("#id_cron").press_sequentially("5 4 * *")
    page.locator(BOX, has_text="five are wanted").wait_for()
    page.locator("#id_cron").press_sequentially(" 1-5")
    page.fill("#id_zone", "Asia/Tokyo")
    page.locator(BOX, has_text="04:05 JST").wait_for()
    box = page.locator(BOX)
    assert "At 04:05" in box.inner_text()
    assert box.locator("tbody tr").count() == 5
    save(page)
    assert page.locator(BOX).locator("tbody tr").count() == 10
    job.refresh_from_db()
    assert (job.schedule, job.cron, job.zone) == ("cron", "5 4 * * 1-5", "Asia/Tokyo")
    page.select_option("#id_schedule", "interval")
    page.fill("#id_interval_minutes", "90")
    page.locator(BOX, has_text="chosen when it is saved").wait_for()
    page.goto(page.url)
    page.select_option("#id_schedule", "interval")
    page.fill("#id_interval_minutes", "90")
    save(page)
    assert "every 90 minutes" in page.locator(BOX).inner_text()
    job.refresh_from_db()
    assert (job.interval_minutes, job.cron) == (90, "") and job.phase is not None


def test_a_page_says_when_a_job_is_due_without_script(browse: Browse, acme: Owner) -> None:
    """All fields are there, the times once it is saved."""
    job = stored(acme, "probe", schedule="cron", cron="@hourly")
    page = browse(f"/admin/jobs/job/{job.pk}/change/", java_script_enabled=False)
    assert page.locator(BOX).locator("tbody tr").count() == 10
    assert page.locator(ROW.format("once_at")).is_visible()
    page.fill("#id_cron", "@daily")
    save(page)
    assert "At 00:00" in page.locator(BOX).inner_text()
