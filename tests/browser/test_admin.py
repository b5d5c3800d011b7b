"""The admin in a real browser: the form of a job, and narrow pages, light and dark."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import Job, Owner, Run
from jobs.owners.limits import pause_owner
from tests.browser.conftest import NARROW, fit_a_phone
from tests.jobs.scenes import failed

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
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
