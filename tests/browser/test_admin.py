"""The admin in a real browser: the form of a job and its schedule; narrow, light and dark."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import Job, Owner, Run
from jobs.owners.limits import pause_owner
from tests.browser.conftest import NARROW, fit_a_phone
from tests.jobs.scenes import failed

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
ROW = ".form-row.field-{}"
BOX = "[data-preview]"
LISTS = ("owner", "job", "submission", "run", "target", "worker", "auditentry")


@pytest.fixture
def failed_run(acme: Owner) -> Run:
    """A run with a failed attempt, a traceback wider than a phone, and markup in its error."""
    traceback = 'Traceback:\n  File "' + "/long" * 60 + '"\n<script>alert(1)</script>'
    message = "no answer <b>within</b> 5 s " * 3
    return failed(acme, "builtins.TimeoutError", message, traceback=traceback, target="sw-1")


def test_a_job_is_made_and_run_in_the_browser(browse: Browse, acme: Owner) -> None:
    """A wrong argument is named at its field; the right one is saved, and run now."""
    page = browse("/admin/jobs/job/add/")
    page.locator(".field-owner .select2-selection").click()
    page.locator(".select2-search__field").fill("ac")
    page.locator(".select2-results__option", has_text="acme").click()
    page.fill("#id_key", "probe")
    page.select_option("#id_task", label="HTTP request (fairshift.http_request)")
    page.fill("#id_arguments", '{"method": "GET", "uri": "https://example.org/"}')
    page.get_by_role("button", name="Save and continue editing").click()
    assert "uri" in page.locator(".field-arguments .errorlist").inner_text()
    page.fill("#id_arguments", '{"method": "GET", "url": "https://example.org/"}')
    page.get_by_role("button", name="Save and continue editing").click()
    page.get_by_role("link", name="Run now").click()
    page.get_by_role("button", name="Run now").click()
    page.locator(".messagelist a").click()
    # A page that is still arriving has a part of it.
    page.locator("dl", has_text="fairshift.http_request").first.wait_for()
    assert Run.objects.get().job == Job.objects.get()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_and_states_can_be_read(
    browse: Browse, failed_run: Run, acme: Owner, scheme: str
) -> None:
    """No page is wider than 360 px; a state's text has a contrast of at least 4.5 to 1."""
    pause_owner(acme, reason="stocktaking " * 10)
    Job.objects.create(owner=acme, key="k" * 200, task="tests.add", payload=b"[[], {}, {}]")
    page = browse("/admin/", viewport=NARROW, color_scheme=scheme)
    paths = [f"/admin/jobs/{name}/" for name in LISTS]
    paths += [
        f"/admin/jobs/run/{failed_run.id}/change/",
        f"/admin/jobs/submission/{failed_run.submission_id}/change/",
        f"/admin/jobs/owner/{acme.pk}/change/",
    ]
    fit_a_phone(page, paths)


def stored(owner: Owner, **columns: Any) -> Job:
    payload = b'[[], {"method": "GET", "url": "https://example.org/"}, {}]'
    given = {"key": "probe", "task": "fairshift.http_request", "payload": payload, **columns}
    return Job.objects.create(owner=owner, **given)


def save(page: Any) -> None:
    page.get_by_role("button", name="Save and continue editing").click()
    page.locator(".messagelist .success").wait_for()


def test_a_schedule_is_told_while_it_is_typed(browse: Browse, acme: Owner) -> None:
    """A description and five times, or the mistake; only its kind's fields are shown and sent."""
    job = stored(acme)
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
    job = stored(acme, schedule="cron", cron="@hourly")
    page = browse(f"/admin/jobs/job/{job.pk}/change/", java_script_enabled=False)
    assert page.locator(BOX).locator("tbody tr").count() == 10
    assert page.locator(ROW.format("once_at")).is_visible()
    page.fill("#id_cron", "@daily")
    save(page)
    assert "At 00:00" in page.locator(BOX).inner_text()
