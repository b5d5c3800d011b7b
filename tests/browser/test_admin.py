"""The admin in a real browser: with the keyboard, narrow, dark, and on a long history."""

from collections.abc import Callable
from typing import Any

import pytest

from fleet import Kind
from jobs.models import AuditEntry, Job, Owner, Run
from jobs.owners.limits import pause_owner
from tests.browser.conftest import NARROW, fit_a_phone
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
LISTS = ("owner", "job", "submission", "run", "target", "worker", "auditentry")


@pytest.fixture
def failed_run(acme: Owner) -> Run:
    """A run with a failed attempt, a traceback wider than a phone, and markup in its error."""
    [run] = submitted(acme, max_attempts=1, labels={"site": "berlin"}, target="sw-1")
    recorded(
        admitted(living_worker(), run),
        Kind.FAILED,
        error_type="builtins.TimeoutError",
        error_message="no answer <b>within</b> 5 s " * 3,
        traceback='Traceback:\n  File "' + "/long" * 60 + '"\n<script>alert(1)</script>',
    )
    run.refresh_from_db()
    return run


def test_a_run_is_retried_from_its_page(browse: Browse, failed_run: Run) -> None:
    """A button, the question with a reason, and back on the page that says so."""
    page = browse(f"/admin/jobs/run/{failed_run.id}/change/")
    assert page.locator(".field-state_mark .fs-state").inner_text() == "failed"
    assert "<b>within</b>" in page.locator(".field-message").inner_text()
    page.get_by_role("link", name="Retry").click()
    page.wait_for_selector("#id_reason:focus")
    page.keyboard.type("the switch is back")
    page.keyboard.press("Enter")
    page.wait_for_url("**/change/")
    assert "queued again" in page.locator(".messagelist").inner_text()
    failed_run.refresh_from_db()
    assert failed_run.state == "queued"
    assert AuditEntry.objects.get().reason == "the switch is back"


def test_all_that_match_are_cancelled_from_the_list(browse: Browse, acme: Owner) -> None:
    """Select a page, then all that match the filter; the question shows the count."""
    submitted(acme, 120)
    page = browse("/admin/jobs/run/?state=queued")
    page.check("#action-toggle")
    page.get_by_text("Select all 120 runs").click()
    page.select_option("select[name=action]", "cancel")
    page.get_by_role("button", name="Go").click()
    assert "120 runs" in page.locator("h1").inner_text()
    page.fill("#id_reason", "wrong version")
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url("**/admin/jobs/run/?state=queued")
    assert "120 of 120" in page.locator(".messagelist").inner_text()
    assert set(Run.objects.values_list("state", flat=True)) == {"cancelled"}


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
    fit_a_phone(page, paths, CONTRASTS)


CONTRASTS = """() => {
    const numbers = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
    const light = rgb => {
        const [r, g, b] = rgb.map(v => (v /= 255) <= .03928 ? v / 12.92
            : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    return [...document.querySelectorAll('.fs-state, .fs-mark')].map(mark => {
        const style = getComputedStyle(mark);
        const [a, b] = [style.color, style.backgroundColor].map(c => light(numbers(c)));
        return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), mark.innerText];
    });
}"""
