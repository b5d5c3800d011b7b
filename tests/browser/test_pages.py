"""Our pages in a real browser: light and dark, wide and narrow, with and without JavaScript."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from fleet import Kind
from jobs.models import Owner, Run, SavedView
from tests.browser.axe import barriers, low_contrasts
from tests.browser.conftest import NARROW, shot
from tests.browser.story import tell
from tests.jobs.admin.conftest import failed_run  # noqa: F401  a fixture
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
PATHS = (
    "/",
    "/login/",
    "/runs/",
    "/runs/?state=odd",
    "/runs/actions/cancel/?owner=acme",
    "/runs/views/",
    "/runs/views/save/?state=open",
    "/runs/views/{view}/delete/",
    "/runs/{run}/",
    "/runs/{run}/retry/",
    "/submissions/submit/",
    "/submissions/",
    "/submissions/{submission}/",
    "/jobs/",
    "/jobs/{job}/",
    "/jobs/{job}/pause/",
    "/calendars/",
    "/create/calendars/",
    "/calendars/{calendar}/",
    "/calendars/{calendar}/fit/",
    "/windows/{window}/",
    "/workers/",
    "/workers/?state=lost",
    "/workers/{worker}/",
    "/failures/",
    "/failures/?task=tests.add&error=none",
    "/webhooks/",
    "/create/webhooks/",
    "/webhooks/{webhook}/",
    "/webhooks/{webhook}/change/",
    "/search/?q=a",
    "/audit/",
    "/owners/",
    "/owners/acme/",
    "/owners/acme/change/",
)
"""The pages that every look visits. A new page adds its path; `tell` and `rows` have the keys.

Of the pages of actions, which have one template, some: `test_actions` looks at each.
"""


@pytest.fixture
def rows(browse: Browse, failed_run: Run) -> dict[str, Any]:  # noqa: F811
    """Runs in several states, and the keys in PATHS."""
    runs = submitted(failed_run.owner, 12, label="Firmware 4.2 of all switches", target="sw-2")
    worker = living_worker()
    for run, kinds in zip(runs, [(Kind.STARTED, Kind.SUCCEEDED), (Kind.STARTED,)], strict=False):
        admission = admitted(worker, run)
        for kind in kinds:
            recorded(admission, kind)
    named = {"name": "Trouble in Berlin", "query": "state=problem&label=site%3Aberlin"}
    view = SavedView.objects.create(user=User.objects.get(username="root"), **named)
    return {"run": failed_run.pk, "submission": runs[0].submission_id, "view": view.pk}


def look(page: Any, path: str, *, name: str) -> None:
    """Fail when a page is wider than the window, or a text has a contrast below 4.5 to 1."""
    page.goto(path)
    shot(page, name)
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert not low_contrasts(page), path
    assert page.evaluate("document.querySelectorAll('h1').length") == 1, path
    assert not barriers(page), path


@pytest.mark.parametrize(
    ("dress", "width"),
    [
        pytest.param(("light", "en"), 1280, marks=pytest.mark.smoke),
        (("dark", "en"), 1280),
        (("light", "de"), 1280),
        (("light", "en"), NARROW["width"]),
        (("dark", "en"), NARROW["width"]),
        (("light", "de"), NARROW["width"]),
    ],
)
def test_pages_fit_and_can_be_read(
    browse: Browse, acme: Owner, rows: dict[str, Any], dress: tuple[str, str], width: int
) -> None:
    """The console has nothing to report, either: see `browsing`. German words are longer."""
    keys, (scheme, language) = rows | tell(acme), dress
    view = {"viewport": {"width": width, "height": 740}, "color_scheme": scheme}
    page = browse("/", locale=language, **view)
    for number, path in enumerate(PATHS):
        look(page, path.format(**keys), name=f"page-{number:02}-{language}-{scheme}-{width}")


def test_the_theme_of_a_person_is_stronger_than_that_of_the_system(browse: Browse) -> None:
    """Set without JavaScript."""
    page = browse("/", color_scheme="light", java_script_enabled=False)
    page.select_option("#theme", "dark")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("html[data-theme=dark]")
    page.wait_for_load_state()
    look_of_body = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(look_of_body) == "rgb(17, 20, 26)"


def test_times_are_in_the_zone_of_the_browser(browse: Browse, rows: dict[str, Any]) -> None:
    """From the second page on; the first one names it."""
    page = browse(f"/runs/{rows['run']}/", timezone_id="Asia/Tokyo")
    page.reload()
    assert "JST" in page.locator("tbody time").first.inner_text()
    page.fill("#zone", "Asia/Kolkata")
    page.get_by_role("button", name="Set").click()
    page.wait_for_load_state()
    assert "IST" in page.locator("tbody time").first.inner_text()


def test_the_current_page_is_seen_in_the_navigation_of_a_phone(browse: Browse) -> None:
    """Its entries are wider than the screen."""
    page = browse("/audit/", viewport=NARROW)
    place = page.locator("nav [aria-current]").bounding_box()
    assert place["x"] >= 0 and place["x"] + place["width"] <= NARROW["width"]


@pytest.mark.parametrize("width", [1280, 1441])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_desktop_shows_every_entry_of_the_navigation(
    browse: Browse, language: str, width: int
) -> None:
    """None is cut off, at the usual width and where the navigation leaves its own row."""
    page = browse("/audit/", locale=language, viewport={"width": width, "height": 740})
    cut = "nav => nav.scrollWidth - nav.clientWidth"
    assert page.locator(".top nav").evaluate(cut) <= 0


def test_keys_open_pages_and_their_list(browse: Browse) -> None:
    page = browse("/?owner=acme")
    page.keyboard.press("?")
    assert page.get_by_text("next and previous row").is_visible()
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press("o")
    assert page.url.endswith("/?owner=acme")
