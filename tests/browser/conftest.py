"""A real browser before a real web server, over real commits."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections

from jobs.management.stack import programs
from jobs.management.stack.stack import Stack, free_port
from jobs.models import Owner
from tests.browser.axe import low_contrasts
from tests.flows.processes import environment
from tests.jobs.conftest import _real_commits, acme, broker, committed, db, no_ticks  # noqa: F401  fixtures

CHROMIUM = shutil.which("chromium")
NARROW = {"width": 360, "height": 740}
WIDE = {"width": 1300, "height": 850}


@pytest.fixture
def redis_url() -> str:
    """The address of Redis for the web process."""
    url: str = settings.REDIS_URL
    return url


@pytest.fixture
def site(committed: None, tmp_path: Path, redis_url: str) -> Iterator[str]:  # noqa: F811
    """The address of a web process of this test, with a superuser named root."""
    User.objects.filter(username="root").delete()
    User.objects.create_superuser("root", password="root")
    port = free_port(0)
    given = {**environment(tmp_path / "tasks.log"), "DEBUG": "1", "ALLOWED_HOSTS": "127.0.0.1"}
    given |= {"REDIS_URL": redis_url, "FAIRSHIFT_OFFERED_TASKS": "tests.*"}
    with Stack([programs.web(port=port, processes=1, environment=given)], log_folder=tmp_path) as s:
        s.wait_ready()
        yield f"http://127.0.0.1:{port}"
    User.objects.filter(username="root").delete()


@contextmanager
def browsing() -> Iterator[Callable[..., Any]]:
    """Open new pages of a Chromium; an error in the console of one fails the test at the end."""
    sync_api = pytest.importorskip("playwright.sync_api")
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def new_page(**context: Any) -> Any:
            page = chromium.new_context(**{"viewport": WIDE, **context}).new_page()
            page.set_default_timeout(300_000)
            page.on("console", lambda said: _note(complaints, said))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            return page

        yield new_page
        chromium.close()
    assert not complaints


def fit_a_phone(page: Any, paths: Iterable[str]) -> None:
    """Fail when a page is wider than a phone, or a coloured text on it has a low contrast."""
    for number, path in enumerate(paths):
        page.goto(path)
        shot(page, f"phone-{number:02}")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
        assert not low_contrasts(page, ".fs-state"), path


def shot(page: Any, name: str) -> None:
    """Keep a picture of a page in the folder at SHOTS, when that is set."""
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture
def browse(
    site: str,
    acme: Owner,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Any]]:
    """Open pages as root; keywords are those of a browser's context, such as `viewport`."""
    # Playwright keeps an event loop in this thread; our queries beside it are not inside of it.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with browsing() as new_page:

        def opened(path: str, **context: Any) -> Any:
            page = new_page(base_url=site, **context)
            page.goto("/admin/login/")
            page.fill("#id_username", "root")
            page.fill("#id_password", "root")
            page.click("[type=submit]")
            page.goto(path)
            return page

        yield opened
        # Beside Playwright's loop Django keeps connections apart, and only there closes them.
        connections.close_all()


def _note(complaints: list[str], said: Any) -> None:
    # Browsers ask for an icon by themselves; the site has none.
    if said.type == "error" and not said.location["url"].endswith("/favicon.ico"):
        complaints.append(f"{said.text} {said.location['url']}")
