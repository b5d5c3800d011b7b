"""The operator's trial: what is broken is named within two clicks from the overview."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest
from django.conf import settings

from jobs import submit_many
from jobs.core.states import State
from jobs.models import Owner, Run, Worker
from jobs.owners.limits import limit_owner
from tests.browser.conftest import shot
from tests.flows.processes import Processes
from tests.jobs.broken import ERROR, all_have_waited, failing_job, unapproved_window
from tests.jobs.scenes import keep_beating, living_worker, silence
from tests.proxy import Proxy
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
DEAD = f"dead@{gethostname()}"
LOOK = "Look at it"


@dataclass
class Installation:
    """An installation of one living worker, in which things are broken one by one."""

    processes: Processes
    proxy: Proxy
    acme: Owner

    def owner_is_starved(self) -> None:
        """Of acme one run is active, and two wait since long: its cap is one."""
        limit_owner(self.acme, max_running=1)
        submit_many("tests.sleep", [{"seconds": 120}] * 3, owner=self.acme)
        wait_for(lambda: Run.objects.filter(state=State.RUNNING).count() == 1)
        all_have_waited(seconds=400)

    def window_is_not_approved(self) -> None:
        unapproved_window(Owner.objects.create(slug="northwind"), "firmware nights")

    def job_fails(self) -> None:
        failing_job(Owner.objects.create(slug="contoso"), "sync-prices")

    def worker_dies(self) -> None:
        """Killed with all its children, and found lost after its lease."""
        worker = self.processes.start_worker("dead", slots=1)
        worker.ready()
        worker.kill()
        beating = Worker.objects.get(hostname=DEAD)
        silence(beating.pk, seconds=60)

    def redis_is_away(self) -> None:
        self.proxy.close()


CAUSES: dict[str, tuple[Callable[[Installation], None], tuple[str, ...]]] = {
    "cap": (Installation.owner_is_starved, ("acme", "at its cap of 1", "of at most 1")),
    "window": (Installation.window_is_not_approved, ("firmware nights", "not approved")),
    "job": (Installation.job_fails, ("sync-prices", ERROR, "Failing since 20")),
    "worker": (Installation.worker_dies, (DEAD, "lost", r"last \d\d:\d\d")),
}
"""Each cause: what makes it, and the visible texts that name it with its object."""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """The web process's way to Redis; others go past it."""
    proxy = Proxy(settings.REDIS_URL)
    yield proxy
    if proxy._thread.is_alive():
        proxy.close()


@pytest.fixture
def redis_url(proxy: Proxy) -> str:
    return proxy.url


@pytest.fixture
def broken(site: str, no_ticks: None, proxy: Proxy, acme: Owner, tmp_path: Path) -> Any:
    """A sound installation: a worker as a process, the system's worker and beat as rows."""
    keep_beating()
    silence(living_worker("system@here", queues=("system",)), seconds=-3_600)
    processes = Processes(tmp_path / "processes")
    processes.start_worker("alive", slots=2).ready()
    yield Installation(processes, proxy, acme)
    processes.stop()


def names(page: Any, texts: tuple[str, ...]) -> None:
    """Fail unless each of these texts, as regular expressions, can be seen on the page."""
    seen = page.inner_text("main")
    assert not [text for text in texts if not re.search(text, seen)], seen


def test_nothing_is_broken(broken: Installation, browse: Browse) -> None:
    """Else the others would prove nothing."""
    names(browse("/"), ("Healthy",))


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_named_with_one_click(broken: Installation, browse: Browse, name: str) -> None:
    """It is the verdict, and the verdict's link leads to what is broken."""
    make, texts = CAUSES[name]
    make(broken)
    page = browse("/")
    assert page.locator(".others").count() == 0, page.inner_text(".verdict")
    page.get_by_role("link", name=LOOK).click()
    page.wait_for_load_state()
    shot(page, f"trial-{name}")
    names(page, texts)


def test_redis_is_named_on_the_overview_and_where_its_runs_wait(
    broken: Installation, browse: Browse
) -> None:
    """The first click shows the runs that wait, the second why one of them does."""
    broken.owner_is_starved()
    Owner.objects.filter(pk=broken.acme.pk).update(max_running=None)
    broken.redis_is_away()
    page = browse("/")
    names(page, ("Redis does not answer",))
    page.get_by_role("link", name=LOOK).first.click()
    page.locator("tbody a").first.click()
    page.wait_for_load_state()
    names(page, ("Redis does not answer",))


def test_with_everything_broken_the_worst_is_the_verdict_and_the_others_are_reached(
    broken: Installation, browse: Browse
) -> None:
    """Opening the list of the others is the first click; an owner is a row of the overview."""
    for make, _texts in CAUSES.values():
        make(broken)
    broken.redis_is_away()
    page = browse("/")
    shot(page, "trial-all")
    verdict = page.locator(".verdict")
    assert "Redis does not answer" in verdict.locator("strong").inner_text()
    three = "3 more problems"
    wait_for(lambda: page.goto("/") and verdict.locator("summary").inner_text() == three)
    for name, said in (("job", "sync-prices"), ("window", "nights"), ("worker", DEAD)):
        item = verdict.locator("li", has_text=said)
        # On a slow machine a problem may be left out: what shows it has a time limit.
        wait_for(lambda at=item: page.goto("/") and at.count(), what=said)  # type: ignore[misc]
        verdict.locator("summary").click()
        item.get_by_role("link", name=LOOK).click()
        page.wait_for_load_state()
        names(page, CAUSES[name][1])
    page.goto("/")
    page.get_by_role("link", name="acme", exact=True).click()
    page.wait_for_load_state()
    names(page, CAUSES["cap"][1])
