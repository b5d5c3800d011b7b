"""The log of a run in a real browser: watched in two windows while its task logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tests.flows.tasks  # noqa: F401  registers the task of the scene
from jobs import submit
from jobs.management.stack import programs
from jobs.management.stack.stack import Stack
from jobs.models import Owner, Run
from tests.browser.conftest import NARROW, shot
from tests.browser.test_live import until
from tests.flows.processes import environment

pytestmark = pytest.mark.proof
LINES = int(os.environ.get("LOG_SECONDS", "6"))
"""A line a second."""


@pytest.fixture
def worker(browse: Callable[..., Any], tmp_path: Path) -> Iterator[None]:
    lease = {"FAIRSHIFT_LEASE_SECONDS": "60"}
    given = {**environment(tmp_path / "tasks.log"), **lease}
    program = programs.job_worker("worker", slots=1, environment=given)
    with Stack([program], log_folder=tmp_path) as stack:
        stack.wait_ready(seconds=120)
        yield


@pytest.mark.usefixtures("worker")
def test_two_windows_show_each_line_once(
    browse: Callable[..., Any], acme: Owner, tmp_path: Path
) -> None:
    """Live, in light and dark, and on a phone; the end stops the questions."""
    given: dict[str, Any] = {"count": LINES, "path": str(tmp_path / "times"), "pause": 1.0}
    run = submit("flows.log_lines", **given, owner=acme)
    pages = {
        "dark": browse(f"/runs/{run.id}/", color_scheme="dark"),
        "phone": browse(f"/runs/{run.id}/", color_scheme="light", viewport=NARROW),
    }

    def texts(page: Any) -> list[str]:
        return [one.split()[0] for one in page.locator(".log .text").all_inner_texts()]

    def has(page: Any, count: int) -> bool:
        return len(texts(page)) >= count

    for count in (LINES // 2, LINES):
        for name, page in pages.items():
            until(page, partial(has, page, count))
            shot(page, f"log-{name}-{count}")
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= page.viewport_size["width"]
    for page in pages.values():
        until(page, lambda: Run.objects.filter(id=run.id, ended_at__isnull=False).exists())
        assert texts(page) == [str(number) for number in range(1, LINES + 1)]
        page.select_option("#log-level", "WARNING")
        page.click(".log form button:not([data-copy])")
        assert texts(page) == [str(n) for n in range(1, LINES + 1) if n % 3]
