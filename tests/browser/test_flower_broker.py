"""Flower in a real browser: the backlog that it shows is the true one, its tasks' pages work."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from fleet.router import acting_for
from jobs.management.stack import programs
from jobs.management.stack.stack import free_port
from tests.browser.conftest import browsing
from tests.flows.processes import Processes
from tests.tasks import add, fail
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

LOGIN = {"username": "ann", "password": "secret"}
OWNERS = ("acme", "globex", "initech", "stranger")


@pytest.fixture
def processes(committed: None, tmp_path: Path) -> Iterator[Processes]:
    """What the scene starts, over empty tables and an empty Redis."""
    started = Processes(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def flower(processes: Processes) -> Iterator[Callable[[str], Any]]:
    """Open pages of Flower, which receives events from now on; no page may log an error."""
    port = free_port(0)
    program = programs.flower(port=port, user=LOGIN["username"], password=LOGIN["password"])
    processes.start(program).ready()
    with browsing() as new_page:
        page = new_page(base_url=f"http://127.0.0.1:{port}", http_credentials=LOGIN)

        def opened(path: str) -> Any:
            page.goto(path)
            return page

        yield opened


def test_the_broker_page_shows_the_true_backlog(
    flower: Callable[[str], Any], tmp_path: Path
) -> None:
    """With no consumer: of all owners, and of stock clients at each of their priorities."""
    for number in range(3_000):
        with acting_for(OWNERS[number % len(OWNERS)]):
            add.delay(number, 1)
    assert _messages(flower, "jobs") == 3_000
    _push_as_stock({0: 2, 3: 3, 6: 4, 9: 5})
    assert _messages(flower, "jobs") == 3_014
    flower("/broker").screenshot(path=tmp_path / "broker.png")


def test_the_pages_of_tasks(
    flower: Callable[[str], Any], processes: Processes, tmp_path: Path
) -> None:
    """What a worker has run is listed, found by its state, and has a page with its result."""
    processes.start_worker()
    processes.ready()

    def heard_of() -> str:
        # Flower hears only what happens after it has begun to listen.
        probe = add.delay(1, 1).id
        wait_for(lambda: _messages(flower, "jobs") == 0, what="the worker to take it")
        return str(probe) if "SUCCESS" in _details(flower, probe) else ""

    wait_for(heard_of, seconds=30, what="Flower to hear of a task")
    for number in range(20):
        with acting_for(OWNERS[number % len(OWNERS)]):
            last = add.delay(number, 1).id
    failed = fail.delay(9).id
    wait_for(lambda: "SUCCESS" in _details(flower, last), what="Flower to hear of the last")
    wait_for(lambda: "FAILURE" in _details(flower, failed), what="Flower to hear of the failure")

    page = flower("/tasks")
    page.wait_for_selector("#tasks-table tbody tr a")
    page.screenshot(path=tmp_path / "tasks.png")
    page.click("[data-task-state=FAILURE]")
    page.wait_for_function("document.querySelectorAll('#tasks-table tbody tr').length == 1")
    page.click("#tasks-table tbody a[href*='/task/']")
    page.wait_for_selector("#task-page")
    page.screenshot(path=tmp_path / "failed.png")
    assert page.locator("#taskid").text_content() == failed
    assert "attempt 1 of 9 that fail" in page.locator("#task-page").inner_text()
    page = flower(f"/task/{last}")
    page.screenshot(path=tmp_path / "task.png")
    assert {"tests.add", "SUCCESS", "(19, 1)", "20"} <= set(
        page.locator("#task-page").inner_text().splitlines()
    )


def _push_as_stock(count_by_priority: dict[int, int]) -> None:
    """Publish as a stock client does, without Fairshift."""
    code = (
        "import json, sys; from celery import Celery; app = Celery(broker=sys.argv[1])\n"
        "for priority, count in json.loads(sys.argv[2]).items():\n"
        "    for number in range(count):\n"
        "        app.send_task('tests.add', (number, 1), queue='jobs', priority=int(priority))\n"
    )
    told = [settings.REDIS_URL, json.dumps(count_by_priority)]
    subprocess.run([sys.executable, "-c", code, *told], check=True, timeout=300)


def _details(flower: Callable[[str], Any], task_id: str) -> str:
    """Return a task's page without asserting: it is missing until Flower receives an event."""
    answer = flower("/broker").request.get(f"/task/{task_id}")
    return str(answer.text()) if answer.ok else ""


def _messages(flower: Callable[[str], Any], queue: str) -> int:
    cells = flower("/broker").locator(f"#queue-table tr#{queue} td")
    return int(cells.nth(1).inner_text().replace(",", ""))
